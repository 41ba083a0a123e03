"""Balls: subscriptions for the k nearest objects, found by a centre and a radius that shrinks."""
