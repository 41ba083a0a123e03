"""What several experiments share: a cluster on bare indexes, replays, flags, charts, claims."""
