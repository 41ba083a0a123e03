"""A client of a nearcast service: publish, subscribe, ask, and notifications as they come.

>>> from nearcast.client import Client
>>> with Client("http://127.0.0.1:8080") as city:  # doctest: +SKIP
...     city.subscribe("near", {"kind": "knn", "at": [139.7, 35.66], "k": 3, "where": "ramen"})
...     city.publish("o1", [139.70, 35.66], text="Ramen, open late")
...     for note in city.notifications("near"):
...         print(note.event, note.object, note.cursor)

`AsyncClient` is the same with `await` and `async for`. It needs neither Spark nor the rest of
nearcast: `pip install 'nearcast[client]'`.
"""

from nearcast.client.asynchronous import AsyncClient
from nearcast.client.client import Client
from nearcast.client.messages import (
    Answer,
    Notification,
    Refusal,
    ServiceError,
    Subscription,
    Taken,
)

__all__ = [
    "Answer",
    "AsyncClient",
    "Client",
    "Notification",
    "Refusal",
    "ServiceError",
    "Subscription",
    "Taken",
]
