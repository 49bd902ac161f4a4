"""Keeps a home that does not write its warehouse up to date, for servers that only answer queries.

Each look asks for the next version of REALTIME's log, of OFFLINE's, and of REALTIME's again: if that has not changed,
both halves were so at one moment (R4). Files are brought first, then OFFLINE's entries and REALTIME's, one right behind
the other. That is three requests a table and look, and one for each new file and entry. The tables are listed, and each
one's definition read, every `TABLES_S`: it says whether the table's plans have changed, and whether rows were purged:
then what the store no longer has is removed at once. Once a day everything is listed, and what it no longer has goes.

A server with pinned tables brings and follows only those (`hybrid.operations.warehouse.pinned_tables`), until it is
about to take over.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hybrid.errors import ConflictError, HybridError, MachineError, StoreError
from hybrid.lake.checkpoint import last_checkpoint
from hybrid.lake.log_entries import newest_entry
from hybrid.lake.store_log import entry_of, fetch_added, has_entry_on_store, link_brought
from hybrid.logs import Lasting
from hybrid.operations.warehouse.home_mirror import halves_of, require_mirror
from hybrid.operations.warehouse.mirrored_plans import bring_plans
from hybrid.operations.warehouse.mirrored_tables import (
    bring_definition,
    bring_hint,
    is_there,
    pull_table,
    set_aside_dropped,
)
from hybrid.operations.warehouse.pinned_tables import PinnedTables
from hybrid.operations.warehouse.pull import pull_warehouse
from hybrid.operations.warehouse.purged_tables import drop_purged
from hybrid.store.published_definition import PublishedTable, published_tables

if TYPE_CHECKING:
    from hybrid.home.home import Home

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
_ATTEMPTS, _CHECKPOINT_EVERY = 10, 50
TABLES_S, WHOLE_S = 10.0, 86_400.0


class WarehouseFollower:
    """Follows the store of a home that another one writes. Not thread-safe."""

    def __init__(self, home: Home) -> None:
        self._home, self._mirror = home, require_mirror(home)
        self._pinned = PinnedTables.of(home, self._mirror)
        self._newest: dict[Path, int] = {}
        self._checkpoint: dict[Path, int] = {}
        self._plans: dict[str, str | None] = {}  # the list of plans of each table that is here
        self._purges: dict[str, str | None] = {}  # the latest purge of each table that was taken over here
        self._purged: Sequence[PublishedTable] = ()  # those with a newer one
        self._pulled_at = self._listed_at = -WHOLE_S
        self._failures: list[MachineError] = []  # of this machine, in the latest look
        self._complaints = Lasting()

    def look(self) -> int:
        """Bring what is new; the number of commits. A table that cannot be followed is logged, and the others are.

        StoreError when the store does not answer. ConflictError once this home is the one that writes.
        """
        now = time.monotonic()
        self._failures.clear()
        if now - self._pulled_at >= WHOLE_S:
            self._pulled_at = self._listed_at = now
            self._newest.clear()
            self._each("the warehouse", self._pull)
        elif now - self._listed_at >= TABLES_S:
            self._listed_at = now
            self._list_tables()
        count = 0
        for name in self._home.definitions.names():
            count += self._each(name, partial(self._follow_table, self._mirror.folder / name)) or 0
        for table in self._purged:  # behind its commits
            self._each(table.name, partial(self._drop_purged, table))
        self._purged = ()
        return count

    def _pull(self) -> None:
        _LOG.info(pull_warehouse(self._home, beside_server=True, has_all=self.has_all).sentence)

    @property
    def has_all(self) -> bool:
        """Whether all tables of the store are brought and followed, not only those that are pinned to this server."""
        return self._pinned.pinning is None

    def bring_all(self) -> None:
        """Bring the other tables, too, and follow all from now on: this home may have to write. Errors as `look`.

        Also MachineError, as of a full disk: a home without it should write. A table that is damaged is left out.
        """
        before, self._pinned = self._pinned, PinnedTables(self._home, self._mirror)
        self._failures.clear()
        try:
            self._list_tables()
            for failure in self._failures:
                raise failure
        except BaseException:
            self._pinned = before
            raise
        self._listed_at = time.monotonic()

    def keep_pinned(self) -> None:
        """Follow only the tables that are pinned to this server, from the next list of the tables on."""
        self._pinned = PinnedTables.of(self._home, self._mirror)

    def _each(self, name: str, work: Callable[[], T]) -> T | None:
        try:
            return work()
        except StoreError:
            raise
        except HybridError as error:
            if isinstance(error, MachineError):
                self._failures.append(error)
            if self._complaints.passes(name):
                _LOG.error("'%s' of %s is not followed: %s", name, self._mirror.url, error)
            return None

    def _list_tables(self) -> None:
        if self._mirror.ownership.is_mine():
            raise ConflictError(f"This home writes {self._mirror.url} now.", hint="Start the server again.")
        published = published_tables(self._mirror)
        for table in self._pinned.begin(published):
            if table.damage:
                self._each(table.name, partial(pull_table, self._home, self._mirror, table))  # says why
                continue
            if is_there(self._mirror, table) and self._is_reachable(self._mirror.folder / table.name):
                bring_definition(self._mirror, table)
                self._each(table.name, partial(self._follow_plans, table))
                continue
            self._each(table.name, partial(self._bring_table, table))
            self._newest.clear()
        set_aside_dropped(self._home, self._mirror, [table.name for table in published])
        purged = [table for table in published if table.purge not in (None, self._purges.get(table.name))]
        self._purged = [table for table in purged if is_there(self._mirror, table)]
        self._pinned.end(purged)

    def _bring_table(self, table: PublishedTable) -> None:
        pull_table(self._home, self._mirror, table, trims=True)
        self._pinned.brought(table.name)

    def _follow_plans(self, table: PublishedTable) -> None:
        if self._plans.get(table.name) != table.plans:
            bring_plans(self._mirror, table)
            self._plans[table.name] = table.plans

    def _drop_purged(self, table: PublishedTable) -> None:
        bring_plans(self._mirror, table)  # a purge writes documents again, too
        if drop_purged(self._home, self._mirror, table):
            self._purges[table.name] = table.purge

    def _is_reachable(self, table: Path) -> bool:
        """Whether the store still has the version that the mirror ends with: its log may be cleaned beyond it."""
        return all(has_entry_on_store(self._mirror, half, newest_entry(half)) for half in halves_of(table))

    def _follow_table(self, table: Path) -> int:
        halves = halves_of(table)
        fresh = self._fresh(halves)
        for half in halves:
            for text in fresh[half]:
                fetch_added(self._mirror, half, text)
        for half in halves:
            for text in fresh[half]:
                link_brought(half, self._newest[half] + 1, text)
                self._newest[half] += 1
        for half in halves:
            if self._newest[half] - self._checkpoint.setdefault(half, last_checkpoint(half)) >= _CHECKPOINT_EVERY:
                bring_hint(self._mirror, half)
                self._checkpoint[half] = self._newest[half]
        return sum(map(len, fresh.values()))

    def _fresh(self, halves: Sequence[Path]) -> Mapping[Path, Sequence[str]]:
        """The texts of the versions that follow the mirror's, of both halves at one moment."""
        fresh = {half: list[str]() for half in halves}
        for _ in range(_ATTEMPTS):
            for half in reversed(halves):  # REALTIME, OFFLINE
                fresh[half] += self._entries_after(half, len(fresh[half]))
            if len(halves) < 2 or not (more := self._entries_after(halves[-1], len(fresh[halves[-1]]))):
                return fresh
            fresh[halves[-1]] += more
        return {half: () for half in halves}  # the writer is quicker than one can look: the next look has it

    def _entries_after(self, half: Path, count: int) -> list[str]:
        """The texts of the versions that follow the mirror's and `count` others that were asked for before."""
        newest, texts = self._newest.setdefault(half, newest_entry(half)) + count, list[str]()
        while (text := entry_of(self._mirror, half, newest + len(texts) + 1)) is not None:
            texts.append(text)
        return texts
