"""What a run reads: planned batches of splits, growing folders, and the logs it knows."""
