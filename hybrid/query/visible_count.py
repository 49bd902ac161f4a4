"""Counts a table's committed rows that a query sees, without a statement: by statistics, or by DuckDB alone.

Importing the parser and the rest of the engine takes longer than the status of all tables otherwise does.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hybrid.config.table_config import TableSpec
from hybrid.lake.log_entries import DataFile
from hybrid.query.database_pool import rows_in_time
from hybrid.query.prune import choose_offline, choose_realtime, shows_all_offline, shows_all_realtime
from hybrid.query.revision import PinnedHalves
from hybrid.query.scan import Scan, relation_sql


class VisibleCount:
    """Counts the visible rows of one table at one revision, without rows that are only in Kafka."""

    def __init__(self, spec: TableSpec, halves: PinnedHalves) -> None:
        self._halves = halves
        self._known = sorted({*halves.realtime.realtime.offsets, *halves.boundary.frontier}) if halves.realtime else []
        boundary = halves.effective(spec.boundary_lag_ms)
        offline: Sequence[DataFile] = halves.offline.files if halves.offline else ()
        realtime: Sequence[DataFile] = halves.realtime.files if halves.realtime else ()
        self._scan = Scan(
            spec,
            None,
            choose_offline(offline, boundary, ()).read,
            choose_realtime(spec, realtime, boundary, self._known, ()).read,
            None,
            boundary,
            (),
            evolved=halves.grown is not None,
            added=halves.grown,
            nets=spec.nets_deletes and halves.deletes > 0,
        )

    def by_statistics(self) -> int | None:
        """The count by the files' statistics; None where the rows themselves have to be read.

        These are upsert tables (each key counts once), tables whose stream deleted rows, tables with a file of which
        the boundary hides some rows and not others, and files without statistics.
        """
        scan, boundary = self._scan, self._scan.boundary
        if scan.spec.upsert is not None or scan.nets:
            return None
        if boundary is not None and not (
            all(shows_all_offline(file, boundary) for file in scan.offline)
            and all(shows_all_realtime(scan.spec, file, boundary, self._known) for file in scan.realtime)
        ):
            return None
        rows = [file.rows for file in (*scan.offline, *scan.realtime)]
        return sum(rows) if all(rows) else None  # a file without statistics seems to have no rows

    def by_reading(self, memory_bytes: int, spill: Path, until: float) -> int | None:
        """The count by a query over the files, which ends by the monotonic time `until`; None when that fails."""
        folders = [half.path.absolute() for half in (self._halves.offline, self._halves.realtime) if half is not None]
        rows = rows_in_time(folders, f"SELECT count(*) FROM ({relation_sql(self._scan)})", until, memory_bytes, spill)
        return None if rows is None else int(rows[0][0])
