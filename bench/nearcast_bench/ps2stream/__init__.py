"""The experiments of PS2Stream (section VI)."""
