"""Dynamic load adjustment of PS2Stream (section V): what moves where, decided on flat arrays.

| paper | here |
|---|---|
| Definitions 1 and 3, loads | `stats`, gathered by `gather` |
| local adjustment: the violated constraint, both phases | `local` |
| Phase I, cells split and merged by text | `phase1`, `text` |
| Phase II, Minimum Cost Migration (Definition 4) | `phase2` |
| DP, GR, SI, RA | `dp`, `gr`, `si`, `ra`; what they share: `selection` |
| global adjustment: two strategies at once | `strategies` |

`decisions` are data: what was decided and why, and the routing table that follows. A function here
takes statistics and a table and returns new ones; it moves nothing. Shards compare the owners in
the old table with those in the new one, so that a subscription that came after the statistics
were taken moves as well. docs/papers/ps2stream.md says where we differ from the paper.
"""
