"""Regions: subscriptions that match every object inside a region, found on posting lists."""
