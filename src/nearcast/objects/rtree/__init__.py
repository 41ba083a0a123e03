"""The paper's store: an R-tree with inverted lists and term counts in its nodes (SSTD 6.1)."""
