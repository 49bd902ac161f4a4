"""Reads the rejected rows of a table: messages that could not be converted, with topic, partition and offset."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from hybrid.config.table_config import Half
from hybrid.errors import TIMEOUT, QueryError, UsageError
from hybrid.home.table_ref import TableRef
from hybrid.records.messages import unpack
from hybrid.runtime.sentence_repr import shown_as
from hybrid.table import columns

if TYPE_CHECKING:
    import pyarrow as pa

REJECTED = "rejected"


@dataclass(frozen=True)
class Bounds:
    """The limits of an answer: characters of a message, and the deadline in seconds of the monotonic clock.

    `batch_rows` messages are read at once: each may have a megabyte.
    """

    value_max: int | None = None
    until: float | None = None
    batch_rows: int = 100

    def check(self) -> None:
        """QueryError after the deadline."""
        if self.until is not None and time.monotonic() > self.until:
            raise QueryError(
                "The rejected rows took longer to read than a statement may.",
                pinot_code=TIMEOUT,
                hint="Ask for fewer of them: limit and offset.",
            )

    def cut(self, text: str | None) -> str | None:
        """The text, or its beginning and its length."""
        if text is None or self.value_max is None or len(text) <= self.value_max:
            return text
        return f"{text[: self.value_max]}... ({len(text)} characters)"


@shown_as("{0.total} rejected rows")
class RejectedPage(NamedTuple):
    """A page of the rejected rows of one version of a table, and the total number of rows."""

    total: int
    rows: list[dict[str, Any]]


def read_rejected(
    files: Sequence[str], limit: int, offset: int = 0, *, everything: bool = False, bounds: Bounds | None = None
) -> list[dict[str, Any]]:
    """The rejected rows of these Parquet files by topic, partition, offset: at most `limit`, after the first `offset`.

    Only rows that are still rejected; with `everything` also rows that were replayed since, each with its `state`.
    QueryError when that takes longer than `bounds` allows.
    """
    names = [columns.TOPIC, columns.PARTITION, columns.OFFSET, columns.REASON, columns.RAW, columns.OP]
    if not files:
        return []
    bounds = bounds or Bounds()
    places = _places(files, names, limit, offset, everything, bounds)
    chosen: dict[int, set[int]] = {}
    for number, row in zip(places["file"].to_pylist(), places["row"].to_pylist(), strict=True):
        chosen.setdefault(number, set()).add(row)
    rejected_rows = [
        {
            "topic": row[columns.TOPIC],
            "partition": row[columns.PARTITION],
            "offset": row[columns.OFFSET],
            "reason": row[columns.REASON],
            "value": bounds.cut(_text(unpack(row[columns.RAW]).value)),
            **({"state": _state(row[columns.OP])} if everything else {}),
        }
        for number, rows in chosen.items()
        for row in _taken(files[number], names, rows, bounds)
    ]
    return sorted(rejected_rows, key=lambda row: (row["topic"], row["partition"], row["offset"]))


def _places(
    files: Sequence[str], wanted: Sequence[str], limit: int, offset: int, everything: bool, bounds: Bounds
) -> pa.Table:
    """The `file` and `row` number of each requested message. Values are not read: a message can be very large."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    places = [name for name in wanted if name not in (columns.RAW, columns.REASON)]
    keys = []
    for number, path in enumerate(files):
        bounds.check()
        part = pq.read_table(path, columns=places, partitioning=None)
        rows = pa.array(range(part.num_rows), pa.int64())
        keys.append(part.append_column("row", rows).append_column("file", pa.array([number] * len(rows), pa.int64())))
    table = pa.concat_tables(keys)
    if not everything:
        table = table.filter(pc.field(columns.OP) == columns.OP_ROW)
    return table.sort_by([(name, "ascending") for name in wanted[:3]]).slice(offset, limit)


def _taken(path: str, wanted: Sequence[str], rows: set[int], bounds: Bounds) -> Iterator[dict[str, Any]]:
    """The rows of one file with these row numbers, batch by batch: at most one batch is in memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    start, last = 0, max(rows)
    for batch in pq.ParquetFile(path).iter_batches(bounds.batch_rows, columns=list(wanted)):
        bounds.check()
        within = [row - start for row in range(start, start + batch.num_rows) if row in rows]
        if within:
            yield from batch.take(pa.array(within, pa.int64())).to_pylist()
        start += batch.num_rows
        if start > last:
            return


def _state(mark: str) -> str:
    return REJECTED if mark == columns.OP_ROW else mark


def _text(raw: bytes | None) -> str | None:
    """The message as text, or as `hex:` and its bytes where it is not UTF-8."""
    if raw is None:
        return None
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return "hex:" + raw.hex()


def check_page(limit: int, offset: int) -> None:
    """UsageError for a page that there cannot be."""
    for name, number in (("limit", limit), ("offset", offset)):
        if number < 0:
            raise UsageError(f"{name}: {number} is not 0 or more.", hint="Rejected rows are counted from 0.")


def rejected_page(
    table: TableRef, limit: int, offset: int = 0, *, everything: bool = False, bounds: Bounds | None = None
) -> RejectedPage:
    """Rejected rows sorted by offset, and their total number, of one version of the table."""
    check_page(limit, offset)
    snapshot = table.half(Half.REALTIME)
    files = [file for file in snapshot.files if file.segment == columns.rejected_segment(table.name)]
    rows = read_rejected([file.path for file in files], limit, offset, everything=everything, bounds=bounds)
    total = sum(file.rows for file in files) if everything else snapshot.realtime.rejected
    return RejectedPage(total, rows)
