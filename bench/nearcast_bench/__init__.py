"""Experiments: workload, measurement, and a check of the answer before any figure is reported.

One folder per paper (`dkm_sks`, `ps2stream`, `tornado`) and per experiment of our own
(`range_index`, `pipeline`, `balance`). `command.py` of a folder declares the flags of the
experiment and runs it; `common` holds what several share. The wheel does not contain this package:
the development install does (`make setup`), and `nearcast bench` loads it.
"""
