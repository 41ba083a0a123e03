"""FAST: a pyramid of cells with an adaptive keyword index in each (Tornado section 3.2)."""
