"""A hot spot that jumps, with and without live balance."""
