"""Experiments: workload, measurement, and a check of the answer before any figure is told."""
