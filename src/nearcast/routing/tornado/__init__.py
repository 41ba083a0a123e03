"""Tornado (Mahmood et al.): the routing layer and its load balancing, one algorithm per file.

| paper | here |
|---|---|
| A-Grid, Partitions Map (3.1) | `a_grid` |
| Algorithm 1, neighborSearch | `neighbour_search` |
| uniform grid and R-tree of figure 7 | `grid_scan`, `r_tree` |
| textual summaries (3, 3.1) | `keyword_summary`, for all evaluators `selective` |
| equation (1); equations (2) and (3) | `routing.grid.costs`; `initialization`, `cell_loads` |
| initialization (4.1) | `initialization`; `split` finds where to split |
| row, column and overall aggregates (4.3, figure 5) | `aggregates` |
| what evaluators send (4.3) | `summary` |
| shift, split/merge, equations (4) and (5) (4.2) | `balance`, `neighbours`, `decision` |
| on the engine: what evaluators report, when what is done | `gather`, `balancing` |
| Text-Rout, Uni-Space-Rout (5.1) | `table.text_table`, `uniform` |

`table` brings all of them to the common routing table, `place` finds copies of subscriptions by
the search. Ours: `chain` makes operations one after the other on `cell_loads`, with `cuts` of the
`pieces` of shards and `merging` where there are too many; `repartition` makes new partitions and
deals them out by `routing.assignment`; `refit` gives a table new bounds. The routers are `router`,
`tornado_text`, `tornado_uniform`.

docs/papers/tornado.md says where we differ from the paper.
"""
