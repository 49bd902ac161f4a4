"""The revision a query is answered from (R4): one OFFLINE version with its boundary, one REALTIME version, a tail.

OFFLINE is pinned first, then REALTIME, and then the OFFLINE version must still be the newest. Otherwise a move may have
taken rows that retention has removed from REALTIME since, and the pair would lack them. A REALTIME version newer than
the OFFLINE version is harmless, because the boundary decides which of its rows count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from hybrid.config.table_config import BoundaryMode, Half, TableSpec
from hybrid.errors import ConflictError
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.lake.log_entries import DataFile, newest_version
from hybrid.runtime.json_values import utc
from hybrid.table.boundary import INFINITE, Boundary, Offsets, PartitionKey
from hybrid.table.effective import EffectiveBoundary

_ROUNDS_MAX = 1000


@dataclass(frozen=True)
class PinnedHalves:
    """The two halves of one table at one moment; a half that the table does not have is None."""

    offline: HalfSnapshot | None
    realtime: HalfSnapshot | None

    @property
    def boundary(self) -> Boundary:
        """The boundary of the pinned OFFLINE version; without that half, a boundary that covers nothing."""
        return self.offline.offline.boundary if self.offline else Boundary()

    @property
    def deletes(self) -> int:
        """More than 0 where rows of a half may be deletes that remove equal rows."""
        in_history = self.offline.offline.deletes if self.offline is not None else 0
        return max(self.realtime.realtime.deletes, in_history) if self.realtime is not None else 0

    def effective(self, lag_ms: int) -> EffectiveBoundary | None:
        """The boundary in effect, with mode pinot's lag; None on a table with one half."""
        if self.offline is None or self.realtime is None:
            return None
        return self.offline.effective_boundary(lag_ms)

    @property
    def widened(self) -> frozenset[str]:
        """The columns whose type differs between files of a half."""
        return frozenset().union(*(half.widened for half in (self.offline, self.realtime) if half is not None))

    @property
    def grown(self) -> frozenset[str] | None:
        """The columns that rows may lack; None when all files hold all columns, each in one type."""
        return all_grown(half.grown for half in (self.offline, self.realtime) if half is not None)


@dataclass(frozen=True)
class LaterRows:
    """The tail's rows as later commits brought them: the rows of `files` below the offsets `ends`.

    `version` is the last of these commits, and `deletes` counts delete markers up to it. `grown` is
    `PinnedHalves.grown` of the newest version.
    """

    files: tuple[DataFile, ...] = ()
    ends: Offsets = field(default_factory=dict)
    deletes: int = 0
    version: int | None = None
    grown: frozenset[str] | None = None


def all_grown(found: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    """The columns that rows of several parts may lack; None where each of them is None."""
    column_sets = [columns for columns in found if columns is not None]
    return frozenset().union(*column_sets) if column_sets else None


@dataclass(frozen=True)
class TableRevision:
    """The versions that the rows of one table were read from. `tail` is the offset after the last row, by partition.

    `plan` is a backfill whose staged rows replace the rows that it would replace.
    `limit_ms` divides the halves: T, unless the boundary's mode or an override sets another limit.
    """

    table: str
    offline: int | None
    realtime: int | None
    boundary: Boundary
    tail: Mapping[PartitionKey, int] = field(default_factory=dict)
    limit_ms: int | None = None
    plan: str | None = None

    def __str__(self) -> str:
        parts = [f"OFFLINE={self.offline}" if self.offline is not None else ""]
        parts.append(f"REALTIME={self.realtime}" if self.realtime is not None else "")
        parts.append(self.boundary_text)
        parts.append(f"tail={_offsets(self.tail)}" if self.tail else "")
        parts.append(f"plan={self.plan}" if self.plan else "")
        return f"{self.table}[{' '.join(part for part in parts if part)}]"

    @property
    def boundary_text(self) -> str:
        """The boundary and the limit in effect, as its text contains them; empty without both halves."""
        if self.offline is None or self.realtime is None:
            return ""
        words = f"boundary={time_text(self.boundary.time_ms)}{_offsets(self.boundary.frontier)}", self._limit_text()
        return " ".join(filter(None, words))

    def _limit_text(self) -> str:
        """The limit in effect; empty where T and F alone decide."""
        if self.boundary.override_ms is not None:
            return f"{self.boundary.mode} override={time_text(self.limit_ms)}"
        return f"pinot limit={time_text(self.limit_ms)}" if self.boundary.mode is BoundaryMode.PINOT else ""


@dataclass(frozen=True)
class Revision:
    """The revisions of all tables of a statement, by table. Responses carry its text."""

    tables: tuple[TableRevision, ...] = ()

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        # An answer and the query log write it, and a table may have a thousand partitions.
        return " ".join(str(table) for table in self.tables)


def pin_halves(spec: TableSpec, layout: TableLayout) -> PinnedHalves:
    """Pins a consistent pair of the table's halves. It retries after a commit in between, and never waits for one."""
    for _ in range(_ROUNDS_MAX):
        offline = open_half(layout.half(Half.OFFLINE)) if Half.OFFLINE in spec.halves else None
        realtime = open_half(layout.half(Half.REALTIME)) if Half.REALTIME in spec.halves else None
        if offline is None or newest_version(offline.path, offline.version) == offline.version:
            return PinnedHalves(offline, realtime)
    raise ConflictError(
        f"Table '{spec.name}': the OFFLINE half was committed to {_ROUNDS_MAX} times while a query tried to pin it.",
        hint="Run the query again.",
    )


def time_text(time_ms: int | None) -> str:
    """T for people: ISO 8601 (UTC), `none` while nothing is covered, `infinite` on a table without a time column."""
    if time_ms is None:
        return "none"
    if time_ms >= INFINITE:
        return "infinite"
    return utc(time_ms).replace(" ", "")


def _offsets(offsets: Mapping[PartitionKey, int]) -> str:
    return "{" + ",".join(f"{key}@{offset}" for key, offset in sorted(offsets.items())) + "}"
