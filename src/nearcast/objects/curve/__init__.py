"""nearcast's own store: rows along a Hilbert curve, one list of rows per word."""
