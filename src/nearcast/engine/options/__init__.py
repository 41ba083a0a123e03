"""Options of a run: written once, checked once, for the command line, TOML and `Engine`."""
