"""Which tables of a store a home that follows has: all, or those that are pinned to its server (docs/adr/0070).

A table that is not here, or not yet, is listed as remote first: from then on the home's server passes requests for it
on. What a table that is pinned here no more leaves behind is removed once no statement can read it any more.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config.pinning import Pinning
from hybrid.operations.warehouse.home_mirror import halves_of, locked
from hybrid.operations.warehouse.mirrored_tables import READ_S, is_there
from hybrid.runtime import durable
from hybrid.store.mirror import DEFINITION_FILE, Mirror, half_keys
from hybrid.store.published_definition import PublishedTable

if TYPE_CHECKING:
    from hybrid.home.home import Home

_UNPINNED = ".unpinned-"


@dataclass(frozen=True)
class PinnedTables:
    """The tables that a home has of its store. `pinning` None: all, as the home that writes has."""

    home: Home
    mirror: Mirror
    pinning: Pinning | None = None
    read_s: float = READ_S  # how long a statement may still read files of a table that is pinned here no more

    @classmethod
    def of(cls, home: Home, mirror: Mirror) -> PinnedTables:
        """Those of a home that another one's warehouse is followed by. SpecError when `[pinning]` is wrong."""
        return cls(home, mirror, home.settings.pinning)

    def is_here(self, table: str) -> bool:
        """Whether the home has this table, once it was brought."""
        return self.pinning is None or self.pinning.is_here(table)

    def begin(self, published: Sequence[PublishedTable]) -> list[PublishedTable]:
        """List as remote what is not here, or not yet; the tables that are to be here."""
        remote = self.home.remote
        for table in published:
            if self.is_here(table.name) and is_there(self.mirror, table):
                remote.remove(table.name)
            elif self.pinning is not None and not table.damage:
                remote.put(table.name, table.document)
        remote.keep_only([table.name for table in published])
        return [table for table in published if self.is_here(table.name)]

    def brought(self, table: str) -> None:
        """A table is here now."""
        self.home.remote.remove(table)

    def end(self, purged: Sequence[PublishedTable] = ()) -> None:
        """Remove tables that are pinned here no more: what they leave behind an hour later, or at once if `purged`.

        A statement that reads a file which goes begins again, as with any purge.
        """
        if self.pinning is None:
            return
        # A table whose definition on the store is damaged is not among them: it stays as it is.
        remote = self.home.remote.names()
        for name in self.home.definitions.names():
            if name in remote and not self.is_here(name):
                (self.mirror.folder / name / DEFINITION_FILE).unlink(missing_ok=True)  # nobody opens it from here on
        now, purged_names = time.time(), {table.name for table in purged}
        for folder in self.mirror.folder.glob("[!.]*"):
            is_left_behind = bool(half_keys(folder)) and not (folder / DEFINITION_FILE).exists()
            wait_s = 0.0 if folder.name in purged_names else self.read_s
            if is_left_behind and not self.is_here(folder.name) and now - folder.stat().st_mtime >= wait_s:
                self._remove(folder)
        for folder in self.mirror.folder.glob(f"{_UNPINNED}*"):  # also what a killed process has left
            shutil.rmtree(folder, ignore_errors=True)

    def _remove(self, folder: Path) -> None:
        aside = folder.with_name(f"{_UNPINNED}{folder.name}")
        shutil.rmtree(aside, ignore_errors=True)
        with locked(self.home, halves_of(folder)):
            durable.rename(folder, aside)
