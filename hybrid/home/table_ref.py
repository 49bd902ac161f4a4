"""`TableRef`: a table's name, definition and folders, and the state of its halves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half, TableSpec
from hybrid.errors import NotFoundError
from hybrid.lake.layout import TableLayout

if TYPE_CHECKING:  # listing tables loads no engine
    from hybrid.lake.log import HalfSnapshot
    from hybrid.table.boundary import Boundary
    from hybrid.table.effective import EffectiveBoundary


@dataclass(frozen=True)
class TableRef:
    """A table of a home."""

    spec: TableSpec
    layout: TableLayout

    @property
    def name(self) -> str:
        """The table's name."""
        return self.spec.name

    def half(self, half: Half) -> HalfSnapshot:
        """The current state of a half; NotFoundError when the table has no such half."""
        from hybrid.lake.log import open_half

        if half not in self.spec.halves:
            raise NotFoundError(f"Table '{self.name}' has no {half.value} half.")
        return open_half(self.layout.half(half))

    def boundary(self) -> Boundary | None:
        """The boundary of moves, with mode and override; None on a table with one half only."""
        return self.half(Half.OFFLINE).offline.boundary if len(self.spec.halves) == 2 else None

    def effective_boundary(self) -> EffectiveBoundary | None:
        """What the boundary makes visible now; None on a table with one half only."""
        if len(self.spec.halves) < len(Half):
            return None
        return self.half(Half.OFFLINE).effective_boundary(self.spec.boundary_lag_ms)

    def pinned(self) -> FixedTableRef:
        """The table whose halves stay at the versions that are read first, so that each log is read once."""
        return FixedTableRef(self.spec, self.layout)


@dataclass(frozen=True)
class FixedTableRef(TableRef):
    """A table for one answer made of several parts: each half is opened once, when it is first asked for."""

    _opened: dict[Half, HalfSnapshot] = field(default_factory=dict, init=False, repr=False, compare=False)

    def pinned(self) -> FixedTableRef:
        """This table, which is pinned already."""
        return self

    def half(self, half: Half) -> HalfSnapshot:
        """The state of a half when it was first asked for; NotFoundError when the table has no such half."""
        if half not in self._opened:
            self._opened[half] = self._newest(half)
        return self._opened[half]

    def _newest(self, half: Half) -> HalfSnapshot:
        return super().half(half)
