"""Keeps a home that does not write its warehouse up to date, for servers that only answer queries.

Each look asks for the next version of REALTIME's log, then of OFFLINE's, and brings OFFLINE's entries first: whatever
a commit of REALTIME depends on is in OFFLINE before it (R4). That is two requests a table and look, and one for each
new file and entry. The tables are listed, and each one's definition read, every `TABLES_S`. Once a day everything is
listed, and what the store no longer has is removed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.errors import ConflictError
from hybrid.lake.log_entries import newest_entry
from hybrid.lake.store_log import bring_entry, entry_of
from hybrid.operations.warehouse.home_mirror import halves_of, require_mirror
from hybrid.operations.warehouse.mirrored_tables import bring_definition, is_there, pull_table, set_aside_dropped
from hybrid.operations.warehouse.pull import pull_warehouse
from hybrid.store.published_definition import published_tables

if TYPE_CHECKING:
    from hybrid.home.home import Home
    from hybrid.store.mirror import Mirror

TABLES_S, WHOLE_S = 10.0, 86_400.0


class WarehouseFollower:
    """Follows the store of a home that another one writes. Not thread-safe."""

    def __init__(self, home: Home) -> None:
        self._home, self._mirror = home, require_mirror(home)
        self._newest: dict[Path, int] = {}
        self._pulled_at = self._listed_at = -WHOLE_S

    def look(self) -> int:
        """Bring what is new; the number of commits. StoreError when the store does not answer.

        ConflictError once this home is the one that writes.
        """
        now = time.monotonic()
        if now - self._pulled_at >= WHOLE_S:
            report = pull_warehouse(self._home, beside_server=True)
            logging.getLogger(__name__).info(report.sentence)
            self._pulled_at = self._listed_at = now
            self._newest.clear()
        elif now - self._listed_at >= TABLES_S:
            self._list_tables()
            self._listed_at = now
        folder = self._mirror.folder
        return sum(self._follow_table(self._mirror, folder / name) for name in self._home.definitions.names())

    def _list_tables(self) -> None:
        if self._mirror.ownership.is_mine():
            raise ConflictError(f"This home writes {self._mirror.url} now.", hint="Start the server again.")
        published = published_tables(self._mirror)
        for table in published:
            if is_there(self._mirror, table):
                bring_definition(self._mirror, table)
            else:
                pull_table(self._home, self._mirror, table)
                self._newest.clear()
        set_aside_dropped(self._home, self._mirror, [table.name for table in published])

    def _follow_table(self, mirror: Mirror, table: Path) -> int:
        halves = halves_of(table)
        fresh = {half: self._entries_after(mirror, half) for half in reversed(halves)}  # REALTIME is asked first
        for half in halves:
            for text in fresh[half]:
                bring_entry(mirror, half, self._newest[half] + 1, text)
                self._newest[half] += 1
        return sum(map(len, fresh.values()))

    def _entries_after(self, mirror: Mirror, half: Path) -> Sequence[str]:
        """The texts of the versions that follow the mirror's."""
        newest, texts = self._newest.setdefault(half, newest_entry(half)), list[str]()
        while (text := entry_of(mirror, half, newest + len(texts) + 1)) is not None:
            texts.append(text)
        return texts
