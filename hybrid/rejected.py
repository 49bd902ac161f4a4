"""Reads the rejected rows of a table: what could not be converted, with its coordinates. Part of the API's layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hybrid.table import columns
from hybrid.table.messages import unpack

if TYPE_CHECKING:
    import pyarrow as pa

REJECTED = "rejected"
# Messages that are read at once, to keep those that are asked for.
_BATCH_ROWS = 1000


def read_rejected(
    files: Sequence[str], limit: int, offset: int = 0, *, everything: bool = False
) -> list[dict[str, Any]]:
    """Rejected rows of these Parquet files by topic, partition, offset: at most `limit`, after the first `offset`.

    Those that are still rejected; with `everything` also those that were brought since, each with its `state`.
    """
    wanted = [columns.TOPIC, columns.PARTITION, columns.OFFSET, columns.REASON, columns.RAW, columns.OP]
    if not files:
        return []
    table = _rows(files, wanted, limit, offset, everything)
    return [
        {
            "topic": row[columns.TOPIC],
            "partition": row[columns.PARTITION],
            "offset": row[columns.OFFSET],
            "reason": row[columns.REASON],
            "value": _text(unpack(row[columns.RAW]).value),
            **({"state": _state(row[columns.OP])} if everything else {}),
        }
        for row in table.to_pylist()
    ]


def _rows(files: Sequence[str], wanted: Sequence[str], limit: int, offset: int, everything: bool) -> pa.Table:
    """The rows asked for. The messages themselves, which may be any number of bytes, are read of these rows only."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    places = [name for name in wanted if name not in (columns.RAW, columns.REASON)]
    keys = []
    for number, path in enumerate(files):
        found = pq.read_table(path, columns=places, partitioning=None)
        rows = pa.array(range(found.num_rows), pa.int64())
        keys.append(found.append_column("row", rows).append_column("file", pa.array([number] * len(rows), pa.int64())))
    table = pa.concat_tables(keys)
    if not everything:
        table = table.filter(pc.field(columns.OP) == columns.OP_ROW)
    table = table.sort_by([(name, "ascending") for name in wanted[:3]]).slice(offset, limit)
    chosen: dict[int, set[int]] = {}
    for number, row in zip(table["file"].to_pylist(), table["row"].to_pylist(), strict=True):
        chosen.setdefault(number, set()).add(row)
    parts = [_taken(files[number], wanted, rows) for number, rows in chosen.items()]
    if not parts:
        return table
    return pa.concat_tables(parts).sort_by([(name, "ascending") for name in wanted[:3]])


def _taken(path: str, wanted: Sequence[str], rows: set[int]) -> pa.Table:
    """These rows of one file, by their places in it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    parts, start = [], 0
    for batch in pq.ParquetFile(path).iter_batches(_BATCH_ROWS, columns=list(wanted)):
        within = [row - start for row in range(start, start + batch.num_rows) if row in rows]
        if within:
            parts.append(pa.Table.from_batches([batch.take(pa.array(within, pa.int64()))]))
        start += batch.num_rows
    return pa.concat_tables(parts)


def _state(mark: str) -> str:
    return REJECTED if mark == columns.OP_ROW else mark


def _text(raw: bytes | None) -> str | None:
    """The message as text; as `hex:` and its bytes where it is not UTF-8."""
    if raw is None:
        return None
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return "hex:" + raw.hex()
