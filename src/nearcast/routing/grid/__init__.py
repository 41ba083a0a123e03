"""One routing table for all that deal by place and word: who owns a cell, or a word within it.

| file | what |
|---|---|
| `table` | the table, its bytes, who owns what, where subscriptions and objects go |
| `survey` | range subscriptions as flat arrays: what a table deals, and what a plan is made from |
| `router` | the router that deals by a table, and what planners add to it |
| `leaving`, `reporting`, `both` | what a new table moves; which copy reports; two tables in use |
| `balancing`, `costs` | what routers that balance share; what the objects of each cell cost |
| `counted` | keys with counts: words with any subscription, for dispatchers that discard |

A subscription is posted under its *posting words*: the cover words of an OR, the rarest word of a
conjunction, `UNIVERSAL` where any object may match. It has a copy at the owner of (cell, posting
word) for each cell that its outer boxes touch. An object goes to the owners of its cell with each
of its words and `UNIVERSAL`. So both reach the owner of (the object's cell, a posting word that
the object holds).
"""
