"""What the cache makes of a half's commit: whether its difference tells what is visible now, and the rows it brings."""

from __future__ import annotations

from collections.abc import Collection

from hybrid.config.table_config import BoundaryMode, TableSpec
from hybrid.lake.log import Commit
from hybrid.query.cache.table_snapshot import columns
from hybrid.query.scan import FILE, Scan, stored_sql
from hybrid.table.boundary import Boundary
from hybrid.table.columns import OP
from hybrid.table.state import OfflineState


def is_onward(spec: TableSpec, files: Collection[str], boundary: Boundary | None, commit: Commit) -> bool:
    """Whether an OFFLINE commit only adds rows and brings the boundary forward, by rows that it brings back.

    `files` and `boundary` are what the half showed before it.
    """
    if any(path not in files for path in commit.removed) or (commit.removed and spec.picks_winners):
        return False
    if not isinstance(commit.state, OfflineState):
        return not commit.added and not commit.removed  # rows that somebody else wrote
    if boundary is None:
        return True
    after = commit.state.boundary
    plain = boundary.mode is after.mode is BoundaryMode.EXACT
    return plain and boundary.override_ms is None and after.override_ms is None


def staged_sql(scan: Scan, first: int, where: str) -> str:
    """The visible rows of a scan's files as a generation takes them, its offline files numbered from `first` on."""
    number = f"CASE WHEN {FILE} = 0 THEN 0 ELSE {FILE} + {first - 1} END AS {FILE}"
    return f"SELECT {columns(scan.spec, OP)}, {number} FROM ({stored_sql(scan)}){where}"
