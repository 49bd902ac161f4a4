"""Rows that both halves hold: those of REALTIME for which the offline half answers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from hybrid.lake.parquet_paths import paths_sql
from hybrid.query.database_pool import rows_in_time
from hybrid.query.prune import is_covered
from hybrid.table.columns import OFFSET, TIME, bookkeeping
from hybrid.table.coverage_sql import visible_realtime_sql

if TYPE_CHECKING:
    from hybrid.config.table_config import TableSpec
    from hybrid.lake.log import HalfSnapshot
    from hybrid.lake.log_entries import DataFile
    from hybrid.table.effective import EffectiveBoundary


class StoredTwice(NamedTuple):
    """Rows of REALTIME that OFFLINE has taken over, and their share of the bytes of their files."""

    rows: int = 0
    bytes: int = 0


def stored_twice(
    spec: TableSpec, realtime: HalfSnapshot, boundary: EffectiveBoundary, until: float | None
) -> StoredTwice | None:
    """Count the rows that both halves hold. None when files have to be read for it, and not until then.

    Statistics answer for files of which all rows, or none, have moved. The others are read until the monotonic time
    `until`; None: not at all.
    """
    partitions = sorted({*realtime.realtime.offsets, *boundary.frontier})
    others = bookkeeping(spec.name)
    files = [file for file in realtime.files if file.segment not in others]
    counts = {file.path: file.rows for file in files if is_covered(spec, file, boundary, partitions)}
    partly = [file for file in files if file.path not in counts and _may_be_covered(file, boundary)]
    if partly:
        read = _counted(realtime, partly, boundary, until)
        if read is None:
            return None
        counts |= read
    size = sum(file.bytes * counts.get(file.path, 0) // max(file.rows, 1) for file in files)
    return StoredTwice(sum(counts.values()), size)


def _may_be_covered(file: DataFile, boundary: EffectiveBoundary) -> bool:
    earliest, first = file.low.get(TIME), file.low.get(OFFSET)
    if not boundary.covers_time(earliest if isinstance(earliest, int) else None):
        return False
    beyond = isinstance(first, int) and first >= max(boundary.frontier.values(), default=0)
    return boundary.time_alone or not beyond


def _counted(
    realtime: HalfSnapshot, files: Sequence[DataFile], boundary: EffectiveBoundary, until: float | None
) -> dict[str, int] | None:
    """The covered rows of each file, by its path; None when they cannot be counted in time."""
    if until is None or time.monotonic() >= until:
        return None
    paths = paths_sql(file.path for file in files)
    read = f"read_parquet([{paths}], hive_partitioning = false, union_by_name = true, filename = true)"
    sql = f"SELECT filename, count(*) FROM {read} WHERE NOT ({visible_realtime_sql(boundary)}) GROUP BY ALL"
    rows = rows_in_time([realtime.path.absolute()], sql, until)
    return None if rows is None else {str(path): int(count) for path, count in rows}
