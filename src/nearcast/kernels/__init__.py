"""Compiled steps on flat arrays, shared by several structures.

Every function is `njit`, does one step, takes and returns arrays (state as a `NamedTuple` of them)
and has a plain Python twin in `tests/kernels`. Nothing here knows Arrow, files or Spark.
"""
