"""The experiments of Tornado (section 5)."""
