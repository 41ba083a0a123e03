"""`nearcast serve`: a run and the service in front of it, as processes that are watched.

This process starts the engine and the gateways, starts what dies again, and ends both in good
order. It does no work itself, so nothing that goes wrong with a stream or a request ends it.
"""
