"""Many batches of a live run in one process: nothing grows."""
