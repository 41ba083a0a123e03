"""Objects that stay, through the whole pipeline: storing, asking, and a restart."""
