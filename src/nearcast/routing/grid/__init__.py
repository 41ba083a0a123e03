"""One routing table for all that deal by place and word: who owns a cell, or a word within it.

| file | what |
|---|---|
| `table` | the table, its bytes, who owns what, where subscriptions and objects go |
| `survey` | range subscriptions as flat arrays: what a table deals, and what a plan is made from |
| `router` | the router that deals by a table, and what planners add to it |
| `counted` | keys with counts: words that anything hangs under, for dispatchers that discard |

A subscription hangs under its *hooks*: the cover words of an OR, the rarest word of a conjunction,
`UNIVERSAL` where any object may match. It has a copy at the owner of (cell, hook) for each cell
that its outer boxes touch. An object goes to the owners of its cell with each of its words and
`UNIVERSAL`: so the owner of (cell of the object, a hook that the object holds) sees both.
"""
