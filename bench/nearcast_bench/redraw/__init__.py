"""The plots of stored results, drawn again without running anything."""
