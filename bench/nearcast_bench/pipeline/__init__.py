"""What the whole pipeline reaches with many range subscriptions."""
