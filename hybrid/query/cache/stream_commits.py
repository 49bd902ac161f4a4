"""Commits of a half as the cache applies them: whether the difference determines what is visible, and the new rows."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from hybrid.config.table_config import BoundaryMode, TableSpec
from hybrid.lake.log_entries import Commit
from hybrid.query.cache.table_snapshot import columns
from hybrid.query.scan import FILE, Scan, stored_sql
from hybrid.table.boundary import Boundary
from hybrid.table.columns import OP
from hybrid.table.effective import EffectiveBoundary, effective_boundary
from hybrid.table.state import OfflineState


def is_onward(spec: TableSpec, files: Collection[str], boundary: Boundary | None, commit: Commit) -> bool:
    """Whether an OFFLINE commit only adds rows and moves the boundary forward, over rows that it brings itself.

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


def boundaries_after(
    spec: TableSpec, commit: Commit, boundary: Boundary | None, effective: EffectiveBoundary | None
) -> tuple[Boundary | None, EffectiveBoundary | None]:
    """The boundary and the effective boundary after an onward OFFLINE commit, given those before it."""
    if boundary is None or not isinstance(commit.state, OfflineState):
        return boundary, effective
    return commit.state.boundary, effective_boundary(commit.state.boundary, None, spec.boundary_lag_ms)


def emptied_segments(removed: Collection[str], remaining: Collection[str]) -> set[str]:
    """The segments of removed files that no remaining file belongs to; by paths."""
    if not removed:
        return set()
    emptied = {Path(path).parent for path in removed} - {Path(path).parent for path in remaining}
    return {folder.name.partition("=")[2] for folder in emptied}


def staged_sql(scan: Scan, first: int, where: str) -> str:
    """A SELECT of the visible rows of a scan's files for a snapshot, its offline files numbered from `first` on."""
    number = f"CASE WHEN {FILE} = 0 THEN 0 ELSE {FILE} + {first - 1} END AS {FILE}"
    return f"SELECT {columns(scan.spec, OP)}, {number} FROM ({stored_sql(scan)}){where}"
