"""The experiments of DkM-SKS (section 5)."""
