"""What every index must do, as code that any index can be put through.

Nothing here is used by a run. It is shipped so that an index kept elsewhere can be tested as the
ones of nearcast are:

- `oracle`: `replay` says what an event log means, in plain Python on keywords as text. It shares
  nothing with the indexes but `nearcast.model`, and is written to be read beside the SPEC.
- `reading`: raw events to values of the model, refusing what SPEC section 3 refuses.
- `drive`: `plan` cuts a log into batches as the engine does, `run_index` puts an index through.
- `logs`: event logs made of edges (cell borders, equal distances, poles, odd words) from a seed.
- `strategies`: the same logs for Hypothesis, which has to be installed for that module only.
- `checks`: `yield_checks(index, kind)`, the conformance suite; each check takes a seed. Its parts
  are `life_checks`, `kind_checks` and `cases`.

A check raises `AssertionError` when the index is wrong. `tests/testing` proves, with indexes that
are broken on purpose, that every check can do so.
"""
