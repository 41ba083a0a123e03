"""PS2Stream (Chen et al.): routers that deal by place, by word, or by both."""
