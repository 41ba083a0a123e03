"""Logs to be replayed: which files, when each of their events happens."""

from __future__ import annotations

import gzip
import mmap
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nearcast.kernels.jsonkeys import SLOW, count_lines, line_keys
from nearcast.model.errors import Invalid, NearcastError
from nearcast.wire.plain_types import without_views
from nearcast.wire.split import Split
from nearcast.wire.times import timestamps_ms, to_ms

SUFFIXES = (".jsonl", ".ndjson", ".json", ".jsonl.gz", ".ndjson.gz", ".json.gz", ".gz", ".parquet")
_CLASSES = {"subscribe": 0, "unsubscribe": 0, "publish": 1, "ask": 2}
_BOM = b"\xef\xbb\xbf"  # what some editors begin a file of UTF-8 with
_UNKNOWN = 3  # class of what will be refused: it has no place in the order


class _Key(msgspec.Struct):
    op: str
    time: int | str


_KEYS = msgspec.json.Decoder(_Key)


@dataclass(slots=True)
class Log:
    """One file: the keys by which its events are ordered, and where they are."""

    name: str
    path: Path
    format: str  # jsonl, parquet
    offsets: NDArray[np.int64]  # jsonl: of each line, and the end; parquet: first row of each group
    time: NDArray[np.int64]
    group: NDArray[np.int8]
    problems: list[Split] = field(default_factory=list)  # what could not be read of it

    def __len__(self) -> int:
        return len(self.time)


def find_logs(paths: list[str]) -> list[tuple[str, bool]]:
    """(file, whether it came with a folder) for every log that `paths` name, in order."""
    found: list[tuple[str, bool]] = []
    for path in paths:
        here = Path(path)
        if here.is_dir():
            visible = (p for p in here.iterdir() if not p.name.startswith((".", "_")))
            inside = sorted(p for p in visible if p.name.endswith(SUFFIXES))
            if not inside:
                raise NearcastError(f"{path}: the folder holds no .jsonl, .gz or .parquet file")
            found += [(str(p), True) for p in inside]
        elif here.exists():
            found.append((path, False))
        else:
            raise NearcastError(f"{path}: there is no such file or folder")
    return found


def open_log(name: str, lenient: bool, spool: Path) -> Log:
    """Read the keys of a log. An unreadable one of a folder becomes a reject, not an error."""
    path = Path(name)
    try:
        if name.endswith(".parquet"):
            return _open_parquet(name, path)
        if name.endswith(".gz"):
            return _open_gzip(name, path, spool)
        return _open_jsonl(name, path)
    except (OSError, pa.ArrowException, Invalid, EOFError, zlib.error) as error:
        reason = f"cannot be read: {_brief(error)}"
        if not lenient:
            raise NearcastError(f"{name}: {reason}") from error
        return _empty(name, path, reason)


def _brief(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return (str(error).splitlines() or [type(error).__name__])[0]


def _empty(name: str, path: Path, reason: str) -> Log:
    none = np.empty(0, np.int64)
    problem = Split("reject", "", name, first_line=0, reason=reason)
    return Log(name, path, "jsonl", np.zeros(1, np.int64), none, none.astype(np.int8), [problem])


def _open_jsonl(name: str, path: Path) -> Log:
    size = path.stat().st_size
    if size == 0:
        none = np.empty(0, np.int64)
        return Log(name, path, "jsonl", np.zeros(1, np.int64), none, none.astype(np.int8))
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        data = np.frombuffer(mapped, np.uint8)
        offsets, time, group, status = line_keys(data, count_lines(data))
        if data[: len(_BOM)].tobytes() == _BOM:
            offsets[0], status[0] = len(_BOM), SLOW
        for line in np.flatnonzero(status == SLOW).tolist():
            text = data[offsets[line] : offsets[line + 1]].tobytes()
            time[line], group[line] = _slow_key(text)
        del data
    return Log(name, path, "jsonl", offsets, _settled(time, group), group)


def _slow_key(line: bytes) -> tuple[int, int]:
    try:
        key = _KEYS.decode(line)
        return to_ms(key.time), _CLASSES[key.op]
    except Exception:  # whatever it is, the decoder will refuse it with its reason
        return 0, _UNKNOWN


def _settled(time: NDArray[np.int64], group: NDArray[np.int8]) -> NDArray[np.int64]:
    """`time`, with what will be refused standing where it was found: after the event before it."""
    unknown = group == _UNKNOWN
    if unknown.any() and not unknown.all():
        known = np.where(unknown, -1, np.arange(len(time)))
        last = np.maximum.accumulate(known)
        last[last < 0] = np.flatnonzero(~unknown)[0]
        group[unknown] = group[last[unknown]]
        time = time[last]
    return time


def _open_gzip(name: str, path: Path, spool: Path) -> Log:
    """Unpack first: a gzip file can only be read from its beginning."""
    spool.mkdir(parents=True, exist_ok=True)
    plain = spool / f"{abs(hash(name)):x}-{path.stem}"
    with path.open("rb") as raw, gzip.open(raw) as packed, plain.open("wb") as out:
        try:
            # Not `read`: it would lose all that it had unpacked when it meets the damage.
            while piece := packed.read1(1 << 20):
                out.write(piece)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            if out.tell() == 0:
                raise
            damage = _brief(error)
        else:
            damage = ""
    log = _open_jsonl(name, plain)
    if damage:
        reason = f"the rest of the file cannot be unpacked: {damage}"
        log.problems.append(Split("reject", "", name, first_line=len(log) + 1, reason=reason))
    return log


def _open_parquet(name: str, path: Path) -> Log:
    with pq.ParquetFile(path) as file:
        names = file.schema_arrow.names
        if "op" not in names and "value" in names:
            raise Invalid("has a `value` and no `op` column; write the events as columns")
        for column in ("op", "time"):
            if column not in names:
                raise Invalid(f"has no column `{column}` (its columns: {', '.join(names)})")
        groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        keys = without_views(file.read(columns=["op", "time"])).combine_chunks()
    op = keys["op"].cast(pa.string())
    group = np.full(len(op), _UNKNOWN, np.int8)
    for word, code in _CLASSES.items():
        group[pc.equal(op, word).fill_null(False).to_numpy(zero_copy_only=False)] = code
    time, known = _parquet_times(keys["time"])
    group[~known] = _UNKNOWN
    offsets = np.concatenate([[0], np.cumsum(groups)]).astype(np.int64)
    return Log(name, path, "parquet", offsets, _settled(time, group), group)


def _parquet_times(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    if pa.types.is_timestamp(column.type):
        return timestamps_ms(column), column.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_integer(column.type):
        known = column.is_valid().to_numpy(zero_copy_only=False)
        return column.fill_null(0).to_numpy().astype(np.int64), known
    pairs = [_slow_time(value) for value in column.to_pylist()]
    return np.array([t for t, _ in pairs], np.int64), np.array([k for _, k in pairs], bool)


def _slow_time(value: object) -> tuple[int, bool]:
    try:
        return to_ms(value), isinstance(value, str)  # type: ignore[arg-type]
    except Exception:  # refused later, with its reason
        return 0, False
