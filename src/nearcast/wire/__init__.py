"""Events and notifications as bytes: JSONL, Arrow, Parquet.

Decoding turns lines or Parquet rows into the tables of `wire.tables` (columns that kernels read
without a copy) and into rejects; it decides what is valid, and nothing after it does.
"""
