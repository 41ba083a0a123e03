"""GI²: a grid of cells of one size, an inverted file in each (PS2Stream section IV.D)."""
