"""Times: RFC 3339 against the standard library, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.model.errors import Invalid
from nearcast.testing.reading import read_time
from nearcast.wire.tables import LIMIT
from nearcast.wire.times import all_ms, parse_rfc3339, timestamps_ms, to_ms

quick = settings(max_examples=30)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
offsets = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda m: timezone(timedelta(minutes=m)))


@quick
@given(st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 12, 31)), offsets)
def test_like_the_standard_library(moment: datetime, offset: timezone) -> None:
    moment = moment.replace(tzinfo=offset)
    right = (moment - EPOCH) // timedelta(milliseconds=1)
    text = moment.isoformat()
    assert parse_rfc3339(text) == right
    assert read_time(text) == right  # the oracle has a parser of its own


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01t00:00:00z", 0),
        ("1970-01-01 00:00:00Z", 0),
        ("2023-11-14T22:13:20Z", 1_700_000_000_000),
        ("2023-11-14T22:13:20.5Z", 1_700_000_000_500),
        ("2023-11-14T22:13:20.123456789Z", 1_700_000_000_123),
        ("1969-12-31T23:59:59.9999Z", -1),
        ("1970-01-01T01:30:00+01:30", 0),
        ("1969-12-31T23:00:00-01:00", 0),
        ("1970-01-01T00:00:00-00:00", 0),
        ("2016-12-31T23:59:60Z", 1_483_228_800_000),  # a leap second is the next one
        ("2016-12-31T23:59:60.5Z", 1_483_228_800_500),
        ("2024-02-29T00:00:00Z", 1_709_164_800_000),
        ("2000-02-29T00:00:00Z", 951_782_400_000),
        ("0000-01-01T00:00:00Z", -62_167_219_200_000),
        ("9999-12-31T23:59:59.999-23:59", 253_402_387_139_999),
    ],
)
def test_by_hand(text: str, ms: int) -> None:
    assert to_ms(text) == ms
    assert read_time(text) == ms


@pytest.mark.parametrize(
    "text",
    [
        "", "now", "12:00", "1970-01-01", "1970-01-01T00:00:00", "1970-01-01T00:00Z",
        "1970-1-01T00:00:00Z", "1970-01-01T00:00:00.Z", "1970-01-01T00:00:00,5Z",
        "1970-01-01T00:00:00+0100", "1970-01-01T00:00:00+01", " 1970-01-01T00:00:00Z",
        "1970-01-01T00:00:00Z\n", "１970-01-01T00:00:00Z", "-1970-01-01T00:00:00Z",
        "2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "1970-00-01T00:00:00Z",
        "1970-13-01T00:00:00Z", "1970-01-00T00:00:00Z", "1970-04-31T00:00:00Z",
        "1970-01-01T24:00:00Z", "1970-01-01T00:60:00Z", "1970-01-01T00:00:61Z",
        "1970-01-01T00:00:00+24:00", "1970-01-01T00:00:00-00:60",
    ],
)  # fmt: skip
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(Invalid, match=r"^time: ") as caught:
        to_ms(text)
    assert "\n" not in str(caught.value)
    with pytest.raises(Invalid):
        read_time(text)


@pytest.mark.parametrize("ms", [0, -1, LIMIT - 1, 1 - LIMIT])
def test_milliseconds_are_taken_as_they_are(ms: int) -> None:
    assert to_ms(ms) == ms


@pytest.mark.parametrize("ms", [LIMIT, -LIMIT, 2**63, -(2**63), 10**40])
def test_milliseconds_have_a_limit(ms: int) -> None:
    with pytest.raises(Invalid, match=r"^expires: -?\d+ is beyond"):
        to_ms(ms, "expires")


@quick
@given(
    st.lists(
        st.one_of(
            st.integers(-3, 3),
            st.integers(-(2**65), 2**65),
            st.sampled_from(["1970-01-01T00:00:00Z", "x", LIMIT, LIMIT - 1, -LIMIT]),
        ),
        max_size=5,
    )
)
def test_all_at_once_or_not_at_all(values: list[int | str]) -> None:
    found = all_ms(values)
    plain = all(isinstance(v, int) and -LIMIT < v < LIMIT for v in values)
    assert (found is not None) == plain
    if found is not None:
        assert found.dtype == np.int64
        assert found.tolist() == values


UNITS = {"s": 10**3, "ms": 1, "us": 10**-3, "ns": 10**-6}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
def test_timestamps(unit: str, zone: str | None) -> None:
    raw = [0, 1, -1, 1_700_000_000_123, -1_500, None]
    column = pa.array(raw, pa.timestamp(unit, zone))
    factor = {"s": (1000, 1), "ms": (1, 1), "us": (1, 1000), "ns": (1, 10**6)}[unit]
    right = [(v or 0) * factor[0] // factor[1] for v in raw]
    assert timestamps_ms(column).tolist() == right
    assert timestamps_ms(pa.chunked_array([column[:2], column[2:]])).tolist() == right


@pytest.mark.parametrize("raw", [2**63 - 1, -(2**63) + 1])
def test_seconds_out_of_reach_stay_out_of_reach(raw: int) -> None:
    [ms] = timestamps_ms(pa.array([raw], pa.timestamp("s"))).tolist()
    assert not -LIMIT < ms < LIMIT
    assert (ms > 0) == (raw > 0)
