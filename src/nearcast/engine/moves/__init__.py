"""Routing versions, plans, moves of subscriptions, and when loads call for them."""
