"""Subscriptions and unsubscribes as rows of CONTROLS."""

from __future__ import annotations

import sys
from typing import Any, cast

import msgspec
import numpy as np
import pyarrow as pa

from nearcast.kernels.program import TAG_AND, TAG_NOT, TAG_OR
from nearcast.kernels.slots import CONJUNCTION, REPORTS, SUBSCRIBE, UNSUBSCRIBE
from nearcast.model.errors import Invalid
from nearcast.model.expression import (
    And,
    Expression,
    Or,
    Word,
    cover,
    parse,
    plain,
    to_postfix,
)
from nearcast.model.region import BBOX, encode, outer_boxes, region_from_json
from nearcast.model.space import Space, check_position
from nearcast.wire.shapes import KnnShape, RangeShape, SubscribeShape, UnsubscribeShape
from nearcast.wire.tables import (
    CONTROLS,
    FOREVER,
    KIND_CODES,
    NEVER,
    control_row,
    empty,
    join,
    list_column,
    numbers,
)
from nearcast.wire.times import to_ms
from nearcast.wire.words import hash_words

_TAGS = {"and": int(TAG_AND), "or": int(TAG_OR), "not": int(TAG_NOT)}
_KNN, _RANGE = KIND_CODES["knn"], KIND_CODES["range"]
_NONE: list[float] = []
_LARGEST = sys.float_info.max
_ENCODE = msgspec.json.Encoder().encode
Token = str | int  # a keyword, to be hashed later, or an operator
_PROGRAM, _COVER = CONTROLS.get_field_index("program"), CONTROLS.get_field_index("cover")


def json_body(text: str) -> bytes:
    """`text` as it stands between the quotes of a JSON string."""
    return _ENCODE(text)[1:-1]


Program = tuple[list[Token], list[Token], bool]


def compile_where(where: str) -> Program:
    """(program, cover, conjunction): see `kernels.program`; the cover of a conjunction is left
    to the index, which knows the rarest of its words. Raises `Invalid`."""
    found = plain(where)
    if found is None:
        return program_of(parse(where))
    conjunction, words = found
    return (words, [], True) if conjunction else _any_of(words)  # type: ignore[return-value]


def _any_of(words: list[str]) -> Program:
    return [*words, len(words) << 2 | _TAGS["or"]], [*sorted(set(words))], False


def program_of(where: Expression) -> Program:
    """The same of any expression."""
    if isinstance(where, Word):
        return [str(where.keyword)], [], True
    if isinstance(where, And | Or):
        words = [str(part.keyword) for part in where.parts if type(part) is Word]
        if len(words) == len(where.parts):
            return ([*words], [], True) if isinstance(where, And) else _any_of(words)
    tokens: list[Token] = [
        value if kind == "word" else value << 2 | _TAGS[kind] for kind, value in to_postfix(where)
    ]
    held = cast("frozenset[str]", cover(where) or frozenset())
    return tokens, sorted(held), False


class ControlBuilder:
    """Collects the control events of a split; words are hashed all at once."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self._rows: list[tuple[Any, ...]] = []
        self._plain_rows = empty(CONTROLS)

    def plain(self, controls: pa.RecordBatch) -> None:
        """Add rows of CONTROLS, in the order of `pos` (`wire.plain_controls`); once."""
        self._plain_rows = controls

    def unsubscribe(self, event: UnsubscribeShape, pos: int) -> None:
        """Add an unsubscribe."""
        time = to_ms(event.time)
        self._rows.append(control_row(op=UNSUBSCRIBE, id=json_body(event.id), time=time, pos=pos))

    def subscribe(self, event: SubscribeShape, pos: int) -> None:
        """Add a subscribe. Raises `Invalid`, also for kinds not built yet."""
        time = to_ms(event.time)
        query = event.query
        if not isinstance(query, (RangeShape, KnnShape)):
            kind = query.__struct_config__.tag
            raise Invalid(f"query.kind: {kind} is not supported yet; range and knn are")
        try:
            program, words, conjunction = compile_where(query.where or "")
        except Invalid as error:
            raise Invalid(f"query.where: {error}") from None
        flags = REPORTS | CONJUNCTION if conjunction else REPORTS
        k, window, boxes = 0, 0, _NONE
        if isinstance(query, KnnShape):
            check_position(self.space, *query.at)
            kind, k, window, data = _KNN, query.k, query.window or 0, list(query.at)
        else:
            kind = _RANGE
            code, data, boxes = self._region(query.region)
            flags |= code
        end = FOREVER if event.expires is None else to_ms(event.expires, "expires")
        tail = _tail(event) if event.owner is not None or event.meta is not None else b""
        id_ = json_body(event.id)
        row = (
            pos, SUBSCRIBE, kind, time, end, NEVER, k, window, flags, id_, tail,
            program, words, data, boxes,
        )  # fmt: skip
        self._rows.append(row)

    def _region(self, region: dict[str, Any]) -> tuple[int, list[float], list[float]]:
        """(code, numbers, outer boxes; none if the region is its own box)."""
        box = region.get("bbox")
        if len(region) == 1 and type(box) is list and len(box) == 4 and self._plain(box):
            return BBOX, [float(v) for v in box], _NONE
        shape = region_from_json(self.space, region)
        code, data = encode(shape)
        boxes = [v for b in outer_boxes(self.space, shape) for v in b]
        return code, data, _NONE if code == BBOX and boxes == data else boxes

    def _plain(self, box: list[Any]) -> bool:
        """Whether a bbox needs no second look: the common case, in a twentieth of the time."""
        a, b, c, d = box
        for v in box:
            if type(v) is not float and type(v) is not int:
                return False
        if self.space is Space.GEOGRAPHIC:
            return bool(-180 < a <= c < 180 and -90 <= b <= d <= 90)
        # A JSON integer may be larger than any float: the second look refuses it.
        inside = -_LARGEST <= a <= c <= _LARGEST and -_LARGEST <= b <= d <= _LARGEST
        return bool(inside)

    def table(self) -> pa.RecordBatch:
        """All rows, in the order of `pos`."""
        if not self._rows:
            return self._plain_rows
        columns = [list(c) for c in zip(*self._rows, strict=True)]
        arrays = [
            self._hashed(c) if n in (_PROGRAM, _COVER) else pa.array(c, CONTROLS.field(n).type)
            for n, c in enumerate(columns)
        ]
        rows = pa.RecordBatch.from_arrays(arrays, schema=CONTROLS)
        if len(self._plain_rows) == 0:
            return rows
        both = join([self._plain_rows, rows], CONTROLS)
        return both.take(pa.array(np.argsort(numbers(both["pos"]))))

    @staticmethod
    def _hashed(column: list[list[Token]]) -> pa.Array:
        offsets = np.zeros(len(column) + 1, np.int64)
        np.cumsum([len(c) for c in column], out=offsets[1:])
        flat = [token for tokens in column for token in tokens]
        words = [token for token in flat if isinstance(token, str)]
        hashes = hash_words(words)
        if len(words) == len(flat):
            values = hashes
        else:
            values = np.array([0 if isinstance(t, str) else t for t in flat], np.uint64)
            values[[isinstance(t, str) for t in flat]] = hashes
        return list_column(offsets, values, CONTROLS.field("program").type)


def _tail(event: SubscribeShape) -> bytes:
    """What notifications echo, ready to be written."""
    tail = b""
    if event.owner is not None:
        tail += b',"owner":' + msgspec.json.encode(event.owner)
    if event.meta is not None:
        try:
            tail += b',"meta":' + msgspec.json.encode(event.meta)
        except (OverflowError, RecursionError, ValueError) as error:
            raise Invalid(f"meta: cannot be echoed ({error})") from None
    return tail
