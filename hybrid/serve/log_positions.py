"""The versions that halves are at, found without reading their logs again while nothing was committed."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from hybrid.config.table_config import Half
from hybrid.home.table_ref import TableRef
from hybrid.lake.log_entries import entry_stamp, is_followed

_HALVES_MAX = 2000


class LogPosition(NamedTuple):
    """The Delta table and version of a half."""

    table_id: str
    version: int


class LogPositions:
    """The position of each half that was asked for. Thread-safe: an entry is replaced whole."""

    def __init__(self, halves_max: int = _HALVES_MAX) -> None:
        self._halves_max = halves_max
        self._found: dict[Path, tuple[LogPosition, tuple[int, int]]] = {}

    def of(self, table: TableRef, half: Half) -> LogPosition:
        """The newest position of a half. Its log is opened if a commit was added, or if the table was created again."""
        path = table.layout.half(half)
        found = self._found.get(path)
        if found is not None and _is_newest(path, *found):
            return found[0]
        snapshot = table.half(half)
        position = LogPosition(snapshot.table_id, snapshot.version)
        stamp = entry_stamp(path, position.version)
        if stamp is not None:
            if len(self._found) >= self._halves_max:
                self._found.clear()
            self._found[path] = position, stamp
        return position


def _is_newest(path: Path, position: LogPosition, stamp: tuple[int, int]) -> bool:
    return entry_stamp(path, position.version) == stamp and not is_followed(path, position.version)
