"""Objects from tables and back."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from tests.objects.making import Post, objects_of

from nearcast.kinds import KINDS
from nearcast.model.space import Space
from nearcast.model.standing import Needs
from nearcast.objects.base import STORED
from nearcast.objects.tables import no_fields, objects_from, read_table, stored_table
from nearcast.wire.jsonl import decode_jsonl

LINES = (
    b'{"op":"publish","id":"o1","time":7,"at":[3,4],"text":"b a b","keywords":["c"]}\n'
    b'{"op":"publish","id":"o\\t2","time":5,"at":[1,2]}\n'
    b'{"op":"publish","id":"o3","time":6,"at":[5,6],"text":"a"}\n'
)
POSTS = [
    Post(1, 2, 5, {}, "o\\t2"),
    Post(5, 6, 6, {"a": 1}, "o3"),
    Post(3, 4, 7, {"b": 2, "a": 1, "c": 1}, "o1"),
]


@pytest.mark.parametrize("needs", [Needs.NOTHING, Needs.COUNTS])
def test_objects_of_a_decoded_log(needs: Needs) -> None:
    table = decode_jsonl(LINES, Space.GEOGRAPHIC, KINDS, needs=needs).objects
    order = np.argsort(table["time"].to_numpy())
    found = objects_from(table, order, np.array([10, 11, 12]))
    wanted = objects_of(POSTS, 10)[0]
    for name, value in wanted._asdict().items():
        if needs is Needs.NOTHING and name == "counts":
            value = np.ones(4, np.int32)
        if needs is Needs.COUNTS or name != "firsts":
            np.testing.assert_array_equal(getattr(found, name), value, err_msg=name)
    assert sorted(found.firsts.tolist()) == [0, 0, 1, 2]


def test_a_table_holds_all_of_an_object() -> None:
    objects, fields = objects_of([p._replace(text=b'"t"', keywords=b"[]") for p in POSTS])
    table = stored_table(objects, fields)
    assert table.schema == STORED
    sliced = pa.concat_batches([table, table]).slice(3)  # a table that begins somewhere in memory
    for read in (table, sliced):
        for got, wanted in zip(read_table(read), (objects, fields), strict=True):
            for one, other in zip(got, wanted, strict=True):
                np.testing.assert_array_equal(one, other)


def test_objects_without_fields_have_none() -> None:
    objects, _ = objects_of(POSTS)
    read = read_table(stored_table(objects, no_fields(3)))[1]
    assert read.text_offsets.tolist() == read.keyword_offsets.tolist() == [0, 0, 0, 0]
