"""The versions that halves are at, found without reading their logs again while nothing was committed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hybrid.config.table_config import Half
from hybrid.home.table_ref import TableRef
from hybrid.lake.log_entries import entry_stamp, is_followed

if TYPE_CHECKING:
    from hybrid.lake.log import HalfSnapshot

_HALVES_MAX = 2000


class LogPosition(NamedTuple):
    """The Delta table and version of a half."""

    table_id: str
    version: int


def position_of(snapshot: HalfSnapshot) -> LogPosition:
    """The position of a snapshot."""
    return LogPosition(snapshot.table_id, snapshot.version)


class LogPositions:
    """The position of each half that was asked for. Thread-safe: an entry is replaced whole."""

    def __init__(self, halves_max: int = _HALVES_MAX) -> None:
        self._halves_max = halves_max
        self._found: dict[Path, tuple[LogPosition, tuple[int, ...]]] = {}

    def of(self, table: TableRef, half: Half) -> LogPosition:
        """The newest position of a half. Its log is opened if a commit was added, or if the table was created again."""
        path = table.layout.half(half)
        found = self._found.get(path)
        if found is not None and self.is_newest(path, found[0]):
            return found[0]
        return self.note(path, table.half(half))

    def note(self, path: Path, snapshot: HalfSnapshot) -> LogPosition:
        """The position of a half whose newest snapshot has just been opened, kept until the next commit."""
        position = position_of(snapshot)
        stamp = entry_stamp(path, position.version)
        if stamp is not None:
            if len(self._found) >= self._halves_max:
                self._found.clear()
            self._found[path] = position, stamp
        return position

    def is_newest(self, path: Path, position: LogPosition) -> bool:
        """Whether a half is known to be at this position still."""
        return self.is_part(path, position) and not is_followed(path, position.version)

    def is_part(self, path: Path, position: LogPosition) -> bool:
        """Whether a half is known to be at this position or beyond it: no other table has taken its place."""
        found = self._found.get(path)
        return found is not None and found[0] == position and entry_stamp(path, position.version) == found[1]
