"""The newest snapshots of halves, which the console's pages share: a log is opened once for all, then followed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half
from hybrid.home.table_ref import FixedTableRef, TableRef
from hybrid.serve.log_positions import LogPositions, position_of

if TYPE_CHECKING:
    from hybrid.lake.log import HalfSnapshot

_HALVES_MAX = 64
_COMMITS_MAX = 20  # a longer way costs more than opening the log
_FILES_MAX = 100_000  # of all snapshots together: about 50 MB


class OpenHalves:
    """Keeps the last used snapshots as long as nothing was committed behind them. Thread-safe."""

    def __init__(self, halves_max: int = _HALVES_MAX, files_max: int = _FILES_MAX) -> None:
        self.positions = LogPositions()
        self._halves_max, self._files_max = halves_max, files_max
        self._kept: OrderedDict[Path, HalfSnapshot] = OrderedDict()
        self._lock = threading.Lock()

    def pinned(self, table: TableRef) -> FixedTableRef:
        """The table whose halves stay at their newest versions when first asked for, opened only if nobody has."""
        return _SharedTableRef(table.spec, table.layout, open_halves=self)

    def newest(self, table: TableRef, half: Half) -> HalfSnapshot:
        """The newest snapshot of a half. Errors as of `TableRef.half`."""
        path = table.layout.half(half)
        with self._lock:
            snapshot = self._kept.get(path)
        if snapshot is None or not self.positions.is_newest(path, position_of(snapshot)):
            snapshot = self._followed(path, snapshot) or table.half(half)
            self.positions.note(path, snapshot)
        self._keep(path, snapshot)
        return snapshot

    def _followed(self, path: Path, snapshot: HalfSnapshot | None) -> HalfSnapshot | None:
        """The newest snapshot by the commits since an older one of the same table; None where it has to be opened."""
        from hybrid.lake.log import follow_half

        if snapshot is None:
            return None
        followed = follow_half(snapshot, _COMMITS_MAX)
        # Checked after the commits were read: until then they were this table's.
        return followed if self.positions.is_part(path, position_of(snapshot)) else None

    def _keep(self, path: Path, snapshot: HalfSnapshot) -> None:
        with self._lock:
            self._kept[path] = snapshot
            self._kept.move_to_end(path)
            while len(self._kept) > 1 and (len(self._kept) > self._halves_max or self._files() > self._files_max):
                self._kept.popitem(last=False)

    def _files(self) -> int:
        """How many files have been listed by the snapshots that are kept."""
        return sum(len(vars(snapshot).get("files", ())) for snapshot in self._kept.values())


@dataclass(frozen=True, kw_only=True)
class _SharedTableRef(FixedTableRef):
    """A table for one answer, whose halves others may have opened."""

    open_halves: OpenHalves

    def _newest(self, half: Half) -> HalfSnapshot:
        return self.open_halves.newest(TableRef(self.spec, self.layout), half)
