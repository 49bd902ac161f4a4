"""Rows that a move took from REALTIME to OFFLINE, in a snapshot that holds them: only the number of their file changes.

Reading the new files, deleting the moved rows and inserting them again would cost more than the move itself, because
each row is removed from the indexes and added again. The files need not be read when three conditions hold:

    the move says that it wrote rows as they were stored: all of them, or the latest of each key in a bucket
    the snapshot holds every row of REALTIME, of which nothing was removed since the move read it, so the snapshot holds
    every moved row or the row that beats it
    no two of the files share a time, so a row's time tells its file

On an upsert table the winners stay the same: a key's greatest row is the latest of its bucket, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half, TableSpec
from hybrid.lake.log_entries import Commit, DataFile
from hybrid.query.cache.table_snapshot import TableSnapshot
from hybrid.query.scan import FILE
from hybrid.table.boundary import Offsets
from hybrid.table.columns import TIME
from hybrid.table.coverage_sql import visible_realtime_sql
from hybrid.table.effective import EffectiveBoundary
from hybrid.table.state import AS_STORED, READ_VERSION, OfflineState

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_MOVE = "move"
# With more files the conditions would cost more than reading them.
_FILES_MAX = 64


@dataclass(frozen=True)
class MovedRows:
    """Realtime rows of a snapshot that are in OFFLINE files now. `where` selects them, `number` is their new file."""

    where: str
    number: str

    def renumber(self, snapshot: TableSnapshot, run: Callable[[str], DuckDBPyConnection]) -> None:
        """Give the rows the numbers of their files."""
        for relation in snapshot.relations:
            run(f"UPDATE {relation} SET {FILE} = {self.number} WHERE {self.where}")


def read_version(commit: Commit) -> int | None:
    """The version of REALTIME that a commit's move read; None: it is no move, or does not say."""
    version = commit.state.act.detail.get(READ_VERSION) if commit.state is not None else None
    return version if isinstance(version, int) else None


def moved_rows(
    spec: TableSpec,
    snapshot: TableSnapshot,
    commit: Commit,
    positions: Offsets,
    after: EffectiveBoundary,
    first: int,
    run: Callable[[str], DuckDBPyConnection],
) -> MovedRows | None:
    """The rows that a commit moved, if only their file changes; None: the commit's files must be read.

    Call it only if the snapshot holds all rows of REALTIME, up to `positions`, and if none was removed after version
    `read_version(commit)`. `after` is the boundary after the commit, `first` the number of its first file.
    """
    state = commit.state
    if not (isinstance(state, OfflineState) and state.act.kind == _MOVE and state.act.detail.get(AS_STORED) is True):
        return None
    if spec.picks_winners and spec.holds_several(Half.REALTIME):
        return None  # rows of a message may be equal in the order, so the file may have another one than memory
    if (
        not 0 < len(commit.added) <= _FILES_MAX  # a move of an empty bucket moves the boundary only
        or commit.removed
        or any(end > positions.get(key, 0) for key, end in state.boundary.frontier.items())
    ):
        return None
    numbered = _in_order(commit.added, first)
    if numbered is None:
        return None
    cases = " ".join(f"WHEN {TIME} <= {high} THEN {number}" for (_, high), number, _ in numbered)
    lows = " ".join(f"WHEN {number} THEN {low}" for (low, _), number, _ in numbered)
    number = f"(CASE {cases} END)"
    moved = MovedRows(f"{FILE} = 0 AND NOT ({visible_realtime_sql(after)})", number)
    found: dict[int | None, int] = {}
    for relation in snapshot.relations:
        inside = f"CASE WHEN {TIME} >= (CASE {number} {lows} END) THEN {number} END"
        for file, rows in run(f"SELECT {inside}, count(*) FROM {relation} WHERE {moved.where} GROUP BY 1").fetchall():
            found[file] = found.get(file, 0) + rows
    expected = {number: file.rows for _, number, file in numbered}
    if spec.picks_winners:
        # Rows that were beaten before the move are in its files only.
        return moved if all(found[number] <= expected.get(number or 0, 0) for number in found) else None
    return moved if found == expected else None


def _in_order(files: Sequence[DataFile], first: int) -> list[tuple[tuple[int, int], int, DataFile]] | None:
    """Times, number and entry of each file, ascending by time; None if two files may share a time."""
    numbered = []
    for number, file in enumerate(files, start=first):
        if file.times is None:
            return None
        numbered.append((file.times, number, file))
    numbered.sort(key=lambda entry: entry[0])
    return numbered if all(one[0][1] < other[0][0] for one, other in pairwise(numbered)) else None
