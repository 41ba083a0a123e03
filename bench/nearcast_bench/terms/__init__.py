"""Standing `terms`: throughput with all moments reported, by index."""
