"""The three routers of DkM-SKS (Tsuruoka et al.), each algorithm and equation in one place.

| paper | here |
|---|---|
| equations (1) to (6) | `costs` |
| equation (7) | `rectangles.most_overlapped` |
| Algorithm 1, Subscription-Assignment | `assignment`, by `routing.dealing` |
| space-oriented partition, Space-only-Partition | `space` |
| Algorithm 2, Subscription-Partitioning; Hybrid-Partition | `partitioning` |
| Algorithm 3, Subscription-Assignment for DkM-SKS | `assignment.subset_assignment` |
| kNN among O_init | `nearest` |
| KOP, SOP, DkM-SKS | `kop`, `sop`, `dkm_sks` |

`vocabulary`, `places` and `counting` hold O_init; `plan` is what the routers share; `arrays` is
the file that a plan is kept in. docs/papers/dkm-sks.md says where we differ from the paper.
"""
