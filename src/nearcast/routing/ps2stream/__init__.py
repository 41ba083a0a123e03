"""The routers of PS2Stream (Chen et al.): hybrid partitioning and its six baselines.

| paper | here |
|---|---|
| Definition 1, load of one worker | `load`; its constants on a machine: `measure` |
| O, Q and T of Definition 2 | `workload`, `text_parts` |
| sim_t | `similarity` |
| Algorithm 1, Partition Workload | `partition_workload` |
| ComputeNumberPartitions | `number_partitions` |
| PartitionNode | `partition_node`, `space_partition`, `text_metric` |
| MergeNodesIntoPartitions | `merge_nodes` |
| kd^t-tree | `nodes` |
| grid^t, H1 | `grid_t`, to a `grid.table.GridTable` |
| H2 | `registered` |
| hybrid partitioning | `hybrid` |
| frequency-, hypergraph-, metric-based text-partitioning | `text_frequency`, `text_hypergraph`, \
`text_metric` |
| grid, kd-tree, R-tree space-partitioning | `space_grid`, `space_kd`, `space_r` |
| dynamic load adjustment (V) | `adjust`; on the engine: `balancing` |

`baseline` is what the routers share. docs/papers/ps2stream.md says where we differ from the paper.
"""
