"""nearcast's own: how far subscriptions reach, by word."""
