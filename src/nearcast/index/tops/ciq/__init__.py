"""CIQ, the baseline of Skype (section 2.2, [12]): covering cells, MinT, document at a time.

- `cover`: the cells that cover the space for a subscription, and MinT;
- `lists`: one list per cell and keyword, by number of subscription;
- `search`: the merge of lists.
"""
