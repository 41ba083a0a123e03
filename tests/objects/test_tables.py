"""Objects from tables and back."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from tests.objects.making import Post, objects_of

from nearcast.objects.base import STORED
from nearcast.objects.tables import no_fields, read_table, stored_table

POSTS = [
    Post(1, 2, 5, {}, "o\\t2"),
    Post(5, 6, 6, {"a": 1}, "o3"),
    Post(3, 4, 7, {"b": 2, "a": 1, "c": 1}, "o1"),
]


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
