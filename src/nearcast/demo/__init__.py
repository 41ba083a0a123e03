"""`nearcast demo`: a city that posts and listens, streamed through the real pipeline for a while.

`city` makes the events, `writer` appends them to a folder at a steady pace, the engine tails that
folder, `screen` shows what comes of it and `map` draws it at the end; `run` puts them together.
Every figure shown is read from the engine's reports or from the notification files.
"""
