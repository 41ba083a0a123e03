"""What DSkype claims of its figures (section 8.2), judged by the points of a run alone.

A claim is held if it holds with every seed. Throughput is judged twice where both say something: by
the processor's time of the slowest shard, and by the candidates that it looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nearcast_bench.common.figures import Figure
from nearcast_bench.common.shapes import by, claim, judged, matching, rising
from nearcast_bench.dskype.setting import (
    GN,
    HASH,
    KEYWORD,
    KEYWORD_FIRST,
    LOCATION,
    PREFIX,
    SPATIAL_FIRST,
    TABLE_5,
    TWEETS,
    YELP,
)

RATE, WORK = "throughput", "examined_by_one"
TARGET, BYTES = 2_600, 700


def claims(reported: list[Figure]) -> Iterator[Figure]:
    """All claims that the points of a run can decide."""
    for judge in (_copies, _mechanisms, _shards, _ks, _subscriptions, _hybrids, _full):
        yield from judge(reported)


def _of(reported: list[Figure], figure: str) -> Iterator[tuple[str, list[Figure]]]:
    """The points of a figure by data."""
    points = matching(reported, figure=figure)
    for data in dict.fromkeys(p["data"] for p in points):
        yield data, matching(points, data=data)


def _mechanisms(reported: list[Figure]) -> Iterator[Figure]:
    for data, points in _of(reported, "21"):

        def rate(p: list[Figure]) -> dict[str, float]:
            return by(p, "mechanism", RATE)

        def work(p: list[Figure]) -> dict[str, float]:
            return by(p, "mechanism", WORK)

        def sent(p: list[Figure]) -> dict[str, float]:
            return by(p, "mechanism", "communication")

        yield judged("21(a)", f"{data}: by location is faster than by hash", points,
                      lambda p: rate(p)[LOCATION] > rate(p)[HASH], rate)  # fmt: skip
        yield judged("21(a)", f"{data}: by prefix is faster than by keyword", points,
                      lambda p: rate(p)[PREFIX] > rate(p)[KEYWORD], rate)  # fmt: skip
        if data in (TWEETS, GN):
            yield judged("21(a)", f"{data}: by prefix is the fastest, by time", points,
                          lambda p: max(rate(p), key=lambda m: rate(p)[m]) == PREFIX,
                          rate)  # fmt: skip
            yield judged("21(a)", f"{data}: by prefix is the fastest, by candidates of the "
                          "slowest shard", points,
                          lambda p: min(work(p), key=lambda m: work(p)[m]) == PREFIX,
                          work)  # fmt: skip
            yield judged("21(b)", f"{data}: by keyword and by prefix at most 0.35 of the copies "
                          "of messages of the others", points,
                          lambda p: max(sent(p)[KEYWORD], sent(p)[PREFIX]) <= 0.35 * sent(p)[HASH],
                          sent)  # fmt: skip
        if data == YELP:
            yield judged("21(a)", f"{data}: by prefix is slower than by hash and by location",
                          points, lambda p: rate(p)[PREFIX] < min(rate(p)[HASH],
                                                                  rate(p)[LOCATION]),
                          rate)  # fmt: skip


def _copies(reported: list[Figure]) -> Iterator[Figure]:
    for data, points in _of(reported, TABLE_5):

        def copies(p: list[Figure]) -> dict[str, float]:
            return by(p, "mechanism", "replication")

        yield judged("table 5", f"{data}: one copy by hash and by location; by prefix fewer than "
                      "by keyword", points,
                      lambda p: copies(p)[HASH] == copies(p)[LOCATION] == 1
                      and 1 <= copies(p)[PREFIX] < copies(p)[KEYWORD], copies)  # fmt: skip
        yield judged("table 5", f"{data}: by keyword 2.7 to 3.5 copies, by prefix 1.5 to 2.4",
                      points, lambda p: 2.7 <= copies(p)[KEYWORD] <= 3.5
                      and 1.5 <= copies(p)[PREFIX] <= 2.4, copies)  # fmt: skip


def _lines(points: list[Figure], x: str, y: str) -> dict[str, dict[Any, Any]]:
    return {name: by(matching(points, mechanism=name), x, y)
            for name in dict.fromkeys(p["mechanism"] for p in points)}  # fmt: skip


def _shards(reported: list[Figure]) -> Iterator[Figure]:
    for data, points in _of(reported, "22"):

        def rates(p: list[Figure]) -> dict[str, dict[int, float]]:
            return _lines(p, "shards", RATE)

        def sent(p: list[Figure]) -> dict[str, dict[int, float]]:
            return _lines(p, "shards", "communication")

        def work(p: list[Figure]) -> dict[str, dict[int, float]]:
            return _lines(p, "shards", WORK)

        yield judged("22", f"{data}: throughput grows with the shards by every mechanism", points,
                      lambda p: all(rising([v for _, v in sorted(line.items())])
                                    for line in rates(p).values()), rates)  # fmt: skip
        yield judged("22", f"{data}: so do candidates of the slowest shard fall", points,
                      lambda p: all(rising([-v for _, v in sorted(line.items())])
                                    for line in work(p).values()), work)  # fmt: skip
        most = max(p["shards"] for p in points)

        def fewer(p: list[Figure], m: int = most) -> bool:
            found = sent(p)
            return found[PREFIX][m] < m == found[HASH][m] == found[LOCATION][m]

        yield judged("22", f"{data}: by prefix a message has fewer copies than shards at {most}, "
                      "by hash and location as many", points, fewer, sent)  # fmt: skip


def _ks(reported: list[Figure]) -> Iterator[Figure]:
    for data, points in _of(reported, "23"):

        def rates(p: list[Figure]) -> dict[str, dict[int, float]]:
            return _lines(p, "k", RATE)

        def work(p: list[Figure]) -> dict[str, dict[int, float]]:
            return _lines(p, "k", WORK)

        yield judged("23", f"{data}: throughput falls with k", points,
                      lambda p: all(line[min(line)] > line[max(line)]
                                    for line in rates(p).values()), rates)  # fmt: skip
        yield judged("23", f"{data}: candidates grow with k", points,
                      lambda p: all(rising([v for _, v in sorted(line.items())])
                                    for line in work(p).values()), work)  # fmt: skip


def _subscriptions(reported: list[Figure]) -> Iterator[Figure]:
    for data, points in _of(reported, "24"):

        def rates(p: list[Figure]) -> dict[str, dict[int, float]]:
            return _lines(p, "subscriptions", RATE)

        def work(p: list[Figure]) -> dict[str, dict[int, float]]:
            return _lines(p, "subscriptions", WORK)

        def linear(line: dict[int, float]) -> bool:
            low, high = min(line), max(line)
            return 0.7 <= (line[high] / line[low]) / (high / low) <= 1.3

        yield judged("24", f"{data}: throughput falls with the subscriptions", points,
                      lambda p: all(line[min(line)] > line[max(line)]
                                    for line in rates(p).values()), rates)  # fmt: skip
        yield judged("24", f"{data}: the work of a message grows in proportion to them (0.7 to "
                      "1.3), by candidates", points,
                      lambda p: all(map(linear, work(p).values())), work)  # fmt: skip


def _hybrids(reported: list[Figure]) -> Iterator[Figure]:
    for data, points in _of(reported, "25"):
        ends = [p for p in matching(reported, figure="21", data=data)
                if p["mechanism"] in (LOCATION, PREFIX)]  # fmt: skip

        def sent(p: list[Figure]) -> dict[str, dict[str, float]]:
            return _lines(p, "levels", "communication")

        def between(p: list[Figure], e: list[Figure] = ends) -> bool:
            own = by(matching(e, seed=p[0]["seed"]), "mechanism", "communication")
            low, high = own[PREFIX] - 0.01, own[LOCATION] + 0.01
            return all(low <= v <= high for line in sent(p).values() for v in line.values())

        if ends:
            yield judged("26", f"{data}: copies of messages are between those by prefix and by "
                          "location", points, between, sent)  # fmt: skip
        yield judged("26", f"{data}: more leaves cost more copies, more sets fewer", points,
                      lambda p: _monotone(sent(p)), sent)  # fmt: skip

        def rates(p: list[Figure]) -> dict[str, dict[str, float]]:
            return _lines(p, "levels", RATE)

        def no_gain(p: list[Figure], e: list[Figure] = ends) -> bool:
            best = max(by(matching(e, seed=p[0]["seed"]), "mechanism", RATE).values())
            return all(v <= 1.25 * best for line in rates(p).values() for v in line.values())

        if ends:
            yield judged("25", f"{data}: no hybrid is more than 1.25 times as fast as the better "
                          "of location and prefix", points, no_gain, rates)  # fmt: skip


def _monotone(lines: dict[str, dict[str, float]]) -> bool:
    def along(name: str) -> list[float]:
        return [v for _, v in sorted(lines[name].items(), key=lambda e: int(e[0].split("x")[0]))]

    return rising(along(SPATIAL_FIRST)) and rising([-v for v in along(KEYWORD_FIRST)])


def _full(reported: list[Figure]) -> Iterator[Figure]:
    for p in matching(reported, figure="full"):
        said = f"{p['data']}, {p['subscriptions']:,} subscriptions"
        rate = p["messages_per_second"]
        yield claim("full", f"{said}: at least {TARGET:,} messages/s, twice DSkype on 72 cores",
                    rate >= TARGET, values=rate)  # fmt: skip
        size = p["bytes_per_subscription"]
        yield claim("full", f"{said}: at most {BYTES} bytes per subscription", size <= BYTES,
                    values=size)  # fmt: skip
