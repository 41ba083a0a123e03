"""Indexes of subscriptions for the objects of highest score in a window."""
