"""A table that rows are purged from, and a search through every byte below it that knows nothing of the product."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from hybrid.lake.commit_context import new_act_id
from hybrid.replace.purge.purge import purge
from hybrid.replace.purge.report import PurgeReport
from hybrid.replace.purge.request import PurgeRequest
from hybrid.sql.row_sql import condition_words, row_condition
from hybrid.table.boundary import Boundary
from tests.query.halves import KEY, Row
from tests.replace.backfill.lab import Lab

NEVER = 10**9


def purge_rows(lab: Lab, where: str, **how: Any) -> PurgeReport:
    """Purges the lab's table."""
    reads, values = condition_words(where, lab.spec, "--where")
    sql = row_condition(where, lab.spec, "--where")
    asked = PurgeRequest(new_act_id("purge"), where, sql, reads, values, **how)
    return purge(lab.context, asked)


def stream(lab: Lab, *rows: Row) -> None:
    """Realtime rows, with the state that belongs to them."""
    newest = lab.realtime.realtime
    lab.halves.realtime = newest
    first = max([newest.offsets.get(KEY, 0), *(one.offset + 1 for one in rows if one.offset is not None)])
    lab.halves.commit_realtime(list(rows), offsets={**newest.offsets, KEY: first})


def reject(lab: Lab, *messages: bytes, first: int = 5000) -> None:
    """Rejected messages, as an ingestion keeps them."""
    segment = f"{lab.spec.name}__rejected"
    rows = [
        _Rejected({"order_id": None}, None, first + number, segment=segment, reason="it does not fit", raw=message)
        for number, message in enumerate(messages)
    ]
    stream(lab, *rows)


class _Rejected(Row):
    """A row that keeps its message."""

    def __init__(self, *args: Any, raw: bytes, **more: Any) -> None:
        super().__init__(*args, **more)
        object.__setattr__(self, "raw", raw)

    def stored(self) -> dict[str, object]:
        return {**super().stored(), "_hy_raw": vars(self)["raw"]}


def move_all(lab: Lab, rows: Sequence[Row], segment: str, until: int) -> None:
    """The rows stand in OFFLINE as a move brings them: REALTIME still has them, below the frontier."""
    lab.halves.commit_offline([replace(one, segment=segment) for one in rows], Boundary(until, {KEY: NEVER}))


def everything(root: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every row in every Parquet file below a folder, whatever names it."""
    for path in sorted(root.rglob("*.parquet")):
        if "_delta_log" not in path.parts:
            for row in pq.ParquetFile(path).read().to_pylist():
                yield path, row


def holding(root: Path, text: str) -> list[str]:
    """The files below a folder with a row that has `text` in some value, or that have it in their bytes."""
    found = {str(path) for path, row in everything(root) if any(text in _text(value) for value in row.values())}
    for path in root.rglob("*"):
        if path.is_file() and text.encode() in path.read_bytes():
            found.add(str(path))
    return sorted(found)


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
