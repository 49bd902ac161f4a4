"""Brings mirror and store together after a crash, and shows how far they are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.errors import HybridError
from hybrid.lake.log import open_half
from hybrid.lake.log_entries import newest_entry
from hybrid.lake.store_log import align, staged_entry, versions_after
from hybrid.lake.unneeded_plans import remove_unneeded
from hybrid.operations.tables.drop import dropped_copies, withdraw_dropped
from hybrid.operations.warehouse.home_mirror import WarehouseReport, halves_of, locked, require_mirror
from hybrid.operations.warehouse.mirrored_plans import bring_plans
from hybrid.operations.warehouse.mirrored_tables import pull_table
from hybrid.operations.warehouse.pinned_tables import PinnedTables
from hybrid.operations.warehouse.push import push_half, push_schemas
from hybrid.progress import counted
from hybrid.runtime.sentence_repr import shown_as
from hybrid.store.mirror import Mirror, half_keys, key_file
from hybrid.store.ownership import Claim
from hybrid.store.published_definition import PublishedTable, published_tables

if TYPE_CHECKING:
    from hybrid.home.home import Home


@shown_as("{0.table} {0.half}: {0.state}")
@dataclass(frozen=True)
class HalfMirror:
    """A half in mirror and store: their newest versions. `state` is SAME, BEHIND, AHEAD, or ABSENT at the store."""

    table: str
    half: str
    url: str
    version: int
    store_version: int | None

    @property
    def state(self) -> str:
        """How the mirror is beside the store."""
        if self.store_version is None:
            return "ABSENT"
        if self.version == self.store_version:
            return "SAME"
        return "BEHIND" if self.version < self.store_version else "AHEAD"

    def to_json(self) -> dict[str, object]:
        """The half as a JSON value."""
        return {**vars(self), "state": self.state}


@shown_as("{0.table}: {0.servers}")
@dataclass(frozen=True)
class TablePlacement:
    """The servers that hold a table, in the order in which they are asked; `is_here`: whether this home has it."""

    table: str
    is_here: bool
    servers: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """The table as a JSON value."""
        return {**vars(self), "servers": list(self.servers)}


@shown_as("{0.url}: {0.words}")
@dataclass(frozen=True)
class WarehouseStatus:
    """A warehouse on a store: who writes it, its halves here and there, and where its tables are pinned."""

    url: str
    claim: Claim | None
    is_mine: bool
    halves: tuple[HalfMirror, ...]
    pinned: tuple[TablePlacement, ...] = ()

    @property
    def words(self) -> str:
        """Who writes it, as a phrase."""
        if self.claim is None:
            return "no home has written there yet"
        who = "this home" if self.is_mine else f"another home, {self.claim.owner.words},"
        return f"{who} writes it since {self.claim.since}"

    def to_json(self) -> dict[str, object]:
        """The status as a JSON value."""
        return {
            "url": self.url,
            "owner": self.claim.owner.words if self.claim else None,
            "since": self.claim.since if self.claim else None,
            "is_mine": self.is_mine,
            "halves": [half.to_json() for half in self.halves],
            "pinned": [table.to_json() for table in self.pinned],
        }


def warehouse_status(home: Home) -> WarehouseStatus:
    """What mirror and store have. Nothing is changed."""
    mirror = require_mirror(home)
    claim = mirror.ownership.look()
    halves = [half for table in home.definitions.names() for half in halves_of(mirror.folder / table)]
    shown = tuple(_half_mirror(mirror, half) for half in halves)
    is_mine = claim is not None and mirror.ownership.is_mine(claim)
    return WarehouseStatus(mirror.url, claim, is_mine, shown, placements(home))


def placements(home: Home) -> tuple[TablePlacement, ...]:
    """Where each table is pinned; none without the setting."""
    pinning, remote = home.settings.pinning, home.remote.names()
    if pinning is None:
        return ()
    names = sorted({*home.definitions.names(), *remote})
    return tuple(TablePlacement(name, name not in remote, pinning.holders(name)) for name in names)


def _half_mirror(mirror: Mirror, half: Path) -> HalfMirror:
    version = newest_entry(half)
    if not key_file(half).exists():
        return HalfMirror(half.parent.name, half.name, mirror.url, version, None)
    # From the mirror's version on: the store has that one unless the mirror is ahead.
    versions = versions_after(mirror, half, version - 1) or versions_after(mirror, half, -1)
    url = f"{mirror.url}/{mirror.key_of(half)}"
    return HalfMirror(half.parent.name, half.name, url, version, max(versions, default=None))


def sync_warehouse(home: Home) -> WarehouseReport:
    """Bring both together: commits, files, definitions and plans that one of them lacks, drops that a crash cut short.

    ConflictError when another home writes the warehouse.
    """
    mirror = require_mirror(home)
    mirror.require_writable(is_recent_enough=False)
    tables, commits, files, errors = home.definitions.names(), 0, 0, list[HybridError]()
    for table in tables:
        try:
            for half in halves_of(mirror.folder / table):
                brought, lost = _sync_half(home, mirror, half)
                commits, files = commits + brought, files + lost
            home.definitions.publish(table, with_plans=True)
        except HybridError as error:  # the others are brought together all the same
            errors.append(error)
    push_schemas(mirror)
    ended, pulled, plan_files, unneeded = list[str](), list[str](), 0, 0
    there = published_tables(mirror)
    for published in (table for table in there if not table.damage):
        if home.definitions.find(published.name) is not None:
            try:
                plan_files += len(bring_plans(mirror, published, keeps_plans=True))
                unneeded += remove_unneeded(mirror, published)
            except HybridError as error:
                errors.append(error)
        elif (copy := _dropped_copy(home, published)) is None:
            pull_table(home, mirror, published)
            pulled.append(published.name)
        elif withdraw_dropped(home, published.name, copy):
            ended.append(published.name)
    PinnedTables(home, mirror).begin(there)  # a home that writes has no remote tables
    if errors:
        raise errors[0]
    deeds = [
        *([f"brought {counted(commits, 'commit')} of the store"] if commits else []),
        *([f"brought {counted(files, 'file')} that the mirror had lost"] if files else []),
        *([f"brought {counted(plan_files, 'file')} of plans"] if plan_files else []),
        *([f"removed {counted(unneeded, 'object')} of plans that nothing needed"] if unneeded else []),
        *([f"ended the drop of {', '.join(ended)}"] if ended else []),
        *([f"brought the tables {', '.join(pulled)}"] if pulled else []),
    ]
    sentence = f"{mirror.folder} and {mirror.url} are the same" + (f": {'; '.join(deeds)}." if deeds else " already.")
    return WarehouseReport(tuple(tables), commits + files, 0, sentence, bool(deeds))


def _dropped_copy(home: Home, published: PublishedTable) -> Path | None:
    """The folder of the dropped table that the store lists still; None when it lists another one."""
    copies = {path: half_keys(path) for path in dropped_copies(home, published.name)}
    return next((path for path, keys in copies.items() if keys == published.halves), None)


def _sync_half(home: Home, mirror: Mirror, half: Path) -> tuple[int, int]:
    """Let a half be the same; the numbers of commits and of files that the mirror lacked."""
    with locked(home, [half]):
        if not key_file(half).exists():  # made by a process that did not know of the store
            push_half(home, mirror, half)
        commits = align(mirror, half)
        staged_entry(half).unlink(missing_ok=True)
        lost = [file for file in open_half(half).files if not Path(file.path).is_file()]
        for file in lost:
            mirror.fetch(mirror.key_of(half, str(Path(file.path).relative_to(half))), Path(file.path))
    return commits, len(lost)
