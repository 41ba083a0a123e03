"""Crash points drawn at random: nothing lost, nothing twice."""
