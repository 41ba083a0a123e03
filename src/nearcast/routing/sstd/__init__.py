"""SSTD (Chen et al.): the QT-tree and its load balancing, one algorithm per file.

| paper | here |
|---|---|
| query distribution statistics on a quadtree J (4.1.1, figure 5) | `statistics`, `queries` |
| the six cost models, equations 1 and 2 (4.1.1) | `cost_model` |
| spatial and textual partitioning, workload increments (4.1.2) | `partitioning`, `object_routing` |
| Algorithm 1, QTtreeConstruction (4.1.2) | `construction` |
| Karmarkar–Karp allocation of leaves (4.1.2) | `karmarkar_karp` |
| routing objects, upkeep of lists; routing queries (4.2) | `object_routing`, `query_routing` |
| upkeep of statistics and lists from version to version (4.1.1, 4.2) | `upkeep` |
| load imbalance, PM, FM (5.1, 5.2) | `reallocation`, with `routing.assignment` |
| split, merge, FG (5.3) | `adjustment` |
| PM, FM, FG in turn (5.3) | `in_turn` |
| versions for snapshot queries (5.2, 5.3) | `versions` |
| Quadtree and Text (7.1) | `sstd_quadtree`, `sstd_text` |

`cells` are the cells that J and the tree share, `qt_tree` is the tree as flat arrays, `draft` a
tree while it is made, `drawing` a picture of it. The routers are `router`, `sstd_quadtree`,
`sstd_text`; `qt_router` is what they share, `leaving` what a new tree moves, `gather` what shards
report for the balance, `live` the balance on the engine.

docs/papers/sstd.md says where we differ from the paper.
"""
