"""Reads the rejected rows of a table: what could not be converted, with its coordinates. Part of the API's layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hybrid.table import columns
from hybrid.table.messages import unpack

REJECTED = "rejected"


def read_rejected(
    files: Sequence[str], limit: int, offset: int = 0, *, everything: bool = False
) -> list[dict[str, Any]]:
    """Rejected rows of these Parquet files by topic, partition, offset: at most `limit`, after the first `offset`.

    Those that are still rejected; with `everything` also those that were brought since, each with its `state`.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    wanted = [columns.TOPIC, columns.PARTITION, columns.OFFSET, columns.REASON, columns.RAW, columns.OP]
    if not files:
        return []
    table = pa.concat_tables([pq.ParquetFile(path).read(columns=wanted) for path in files])
    if not everything:
        table = table.filter(pc.field(columns.OP) == columns.OP_ROW)
    table = table.sort_by([(name, "ascending") for name in wanted[:3]]).slice(offset, limit)
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
