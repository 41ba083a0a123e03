"""What subscriptions, objects, regions, expressions, results are; the one definition of a match.

Everything above this package agrees on its values, and nothing above it may define them again:

- `space`, `words`: positions and distance; how text becomes keywords.
- `expression`: `where`, its grammar, its truth and the keywords that cover it.
- `region`, `geometry`: what a region is; whether a position lies in it.
- `events`: what a log holds. `standing`: what a subscription means and which changes it reports.
- `predicate`: whether a position lies in a region. Indexes and routers may over-report against it,
  never under-report.
- `errors`: `Invalid` is what every refused value raises, with one line that says what to do.
- `jit`: how compiled functions are declared, here and in `kernels`.

Values are frozen and refuse nonsense when they are made. This package must never learn about
keyword hashes, arrays of subscriptions, files, Spark or the network. Import from the modules: this
file exports nothing, so that a value type can be used without loading the compiler.
"""
