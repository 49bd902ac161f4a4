"""The tables of a mirror as the store has them: brought whole, and set aside when they were dropped there.

A half's log is listed before its data files, and REALTIME's before OFFLINE's: what a listed entry needs is there then.
Files come before the entries that name them, OFFLINE before REALTIME, and a table's definition behind them, then its
plans. So a pull that is killed leaves nothing that a query would answer from in part, and the next one continues.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.errors import ConflictError, DataError
from hybrid.lake.checkpoint import HINT, hinted_version
from hybrid.lake.entry_file import is_same_commit, replace_entry
from hybrid.lake.half_head import forget_head
from hybrid.lake.lineage_archive import ARCHIVE_ENDING, archive_file
from hybrid.lake.log_entries import entry_path, newest_entry
from hybrid.lake.store_log import entry_of, link_brought, versions_after
from hybrid.lake.store_refresh import FRESH_LOG, OLD_LOG, HalfObjects, refresh_log
from hybrid.operations.tables.drop import folder_aside
from hybrid.operations.warehouse.home_mirror import halves_of, locked
from hybrid.operations.warehouse.mirrored_plans import bring_plans
from hybrid.operations.warehouse.purged_tables import drop_purged
from hybrid.progress import counted
from hybrid.runtime import durable
from hybrid.store.mirror import DEFINITION_FILE, Mirror, for_all, half_keys, key_file
from hybrid.store.published_definition import PublishedTable
from hybrid.store.store_client import ListedObject

if TYPE_CHECKING:
    from hybrid.home.home import Home

_LOG = "_delta_log/"
_ENTRY = re.compile(r"_delta_log/(\d{20})\.json")
# A query that began before a file went from the store may still read it here.
READ_S = 3600.0
_ATTEMPTS = 10


@dataclass(frozen=True)
class HalfListing:
    """What the store has of a half, by paths below it: its log as listed first, and its data files as listed then."""

    half: Path
    log: Sequence[ListedObject]
    data: Sequence[ListedObject]

    @property
    def entries(self) -> dict[int, ListedObject]:
        """The log's entries by version."""
        return {int(match[1]): item for item in self.log if (match := _ENTRY.search(item.key))}


def pull_table(
    home: Home, mirror: Mirror, table: PublishedTable, *, trims: bool = False, keeps_plans: bool = False
) -> list[ListedObject]:
    """Bring one table; what was downloaded of it. `trims`: remove what the store no longer has.

    `keeps_plans`: as `bring_plans`.
    """
    keys, folder = table.halves, mirror.folder / table.name
    if table.damage:
        raise DataError(table.damage, hint="hybrid warehouse sync, at the home that writes")
    if (there := half_keys(folder)) and any(keys.get(half) != key for half, key in there.items()):
        _set_aside(home, mirror, table.name)  # it was dropped and created again
    durable.make_folder(folder)
    for name, key in keys.items():
        durable.write_text(key_file(folder / name), key)
    halves = [folder / name for name in sorted(keys)]  # OFFLINE, REALTIME
    listings = _listings(mirror, halves)
    with locked(home, halves):
        pulls = [_PulledHalf.download(home, mirror, listing) for listing in listings]
        for pulled in pulls:  # one right behind the other: between them a query would see a pair that never was
            pulled.link()
        for pulled in pulls:
            pulled.end()
            if table.purge is not None:  # what it has written again
                refresh_log(
                    mirror, pulled.listing.half, HalfObjects.of(mirror, pulled.listing.half, pulled.listing.log)
                )
            if trims:
                trim_half(mirror, pulled.listing)
    bring_definition(mirror, table)
    if trims and table.purge is not None:
        drop_purged(home, mirror, table)
    plans = bring_plans(mirror, table, keeps_plans=keeps_plans)  # a table does without them, if they are damaged
    return [*(item for pulled in pulls for item in pulled.fetched), *plans]


def _listings(mirror: Mirror, halves: Sequence[Path]) -> list[HalfListing]:
    """Both halves as they were at one moment: the log of REALTIME has not changed while OFFLINE's was listed."""
    for _ in range(_ATTEMPTS):
        logs = {half: mirror.client.list_below(mirror.key_of(half, _LOG.rstrip("/"))) for half in reversed(halves)}
        last = halves[-1]
        if len(halves) < 2 or not versions_after(
            mirror, last, max(HalfListing(last, logs[last], ()).entries, default=-1)
        ):
            break
    data = {half: mirror.client.list_below(mirror.key_of(half)) for half in halves}
    return [
        HalfListing(half, logs[half], [item for item in data[half] if f"/{_LOG}" not in item.key]) for half in halves
    ]


def is_there(mirror: Mirror, table: PublishedTable) -> bool:
    """Whether a table that the store lists was brought before, and not dropped and created again since."""
    folder = mirror.folder / table.name
    return (folder / DEFINITION_FILE).exists() and half_keys(folder) == table.halves


def bring_definition(mirror: Mirror, table: PublishedTable) -> None:
    """Write a table's definition as the store has it, unless it is as that already."""
    text, path = json.dumps(table.document, indent=1), mirror.folder / table.name / DEFINITION_FILE
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        durable.write_text(path, text)


def trim_half(mirror: Mirror, listing: HalfListing) -> None:
    """Remove what the store no longer has of a half: data files that vacuum removed there, entries that were cleaned.

    Only in a mirror to read: the one that writes has files that the store will have.
    """
    half, prefix = listing.half, f"{mirror.key_of(listing.half)}/"
    there = {item.key.removeprefix(prefix) for item in listing.data}
    now = time.time()
    for path in half.glob("*/*.parquet*"):  # also parts of downloads that were killed
        name = str(path.relative_to(half))
        if not name.startswith(_LOG) and name not in there and now - path.stat().st_mtime > READ_S:
            path.unlink(missing_ok=True)
    oldest, hinted = min(listing.entries, default=0), hinted_version(half)
    for path in sorted((half / _LOG).glob("[0-9]*")):
        if path.name[:20].isdecimal() and int(path.name[:20]) < oldest and int(path.name[:20]) != hinted:
            path.unlink(missing_ok=True)


@dataclass(frozen=True)
class _PulledHalf:
    """A half whose files are here, and the texts of the entries that are not linked yet, by version."""

    mirror: Mirror
    listing: HalfListing
    fetched: Sequence[ListedObject]
    texts: Mapping[int, str]
    is_whole: bool  # the log is brought from its beginning: the store's was cleaned beyond what is here

    @classmethod
    def download(cls, home: Home, mirror: Mirror, listing: HalfListing) -> _PulledHalf:
        """Bring the files of a half, and read its entries."""
        half, entries = listing.half, listing.entries
        newest = newest_entry(half)
        if newest >= 0:
            _require_same(mirror, half, newest, entries)
        is_whole = bool(entries) and newest + 1 < min(entries)
        prefix = f"{mirror.key_of(half)}/"
        lacking = [item for item in listing.data if not _is_there(half / item.key.removeprefix(prefix), item)]
        if lacking:
            home.progress.say(
                f"Downloading {half.name} of '{half.parent.name}': {counted(len(lacking), 'file')}, "
                f"{sum(item.size for item in lacking)} bytes."
            )
        for_all(lambda item: mirror.fetch(item.key, half / item.key.removeprefix(prefix)), lacking)
        fresh = [version for version in sorted(entries) if is_whole or version > newest]
        texts = dict[int, str]()

        def read(version: int) -> None:
            text = entry_of(mirror, half, version)
            if text is None:
                raise DataError(f"{mirror.url}: {entries[version].key} was removed just now.", hint="Run it again.")
            texts[version] = text

        for_all(read, fresh)
        fetched = [*lacking, *(entries[version] for version in fresh)]
        pulled = cls(mirror, listing, fetched, {version: texts[version] for version in fresh}, is_whole)
        if is_whole:
            pulled._write_log_beside()
        return pulled

    def link(self) -> None:
        """Link the entries into the half's log, or let the whole log take the place of it."""
        half = self.listing.half
        if self.is_whole:
            self._swap_log()
            return
        for version, text in self.texts.items():
            link_brought(half, version, text)

    def end(self) -> None:
        """Bring what readers can do without."""
        half = self.listing.half
        self._fetch_checkpoints(half / _LOG)
        bring_hint(self.mirror, half)
        (half / _LOG).mkdir(parents=True, exist_ok=True)
        durable.sync(half / _LOG)
        self.mirror.fetch(f"{self.mirror.key_of(half)}{ARCHIVE_ENDING}", archive_file(half))

    def _write_log_beside(self) -> None:
        """Write the whole log to a folder beside it: until they are swapped, queries read the one that is there."""
        fresh = self.listing.half / FRESH_LOG
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        self._fetch_checkpoints(fresh)
        for version, text in self.texts.items():
            durable.write_text(fresh / f"{version:020d}.json", text)

    def _swap_log(self) -> None:
        half = self.listing.half
        log, old = half / "_delta_log", half / OLD_LOG
        shutil.rmtree(old, ignore_errors=True)
        if log.exists():
            log.rename(old)
        durable.rename(half / FRESH_LOG, log)
        shutil.rmtree(old, ignore_errors=True)
        forget_head(half)

    def _fetch_checkpoints(self, folder: Path) -> None:
        checkpoints = {item.key.rpartition("/")[2]: item for item in self.listing.log if item.key.endswith(".parquet")}
        lacking = [(folder / name, item) for name, item in checkpoints.items() if not _is_there(folder / name, item)]
        for_all(lambda task: self.mirror.fetch(task[1].key, task[0]), lacking)


def bring_hint(mirror: Mirror, half: Path) -> None:
    """Bring the newest checkpoint of the store, and the hint that names it; readers do without, and take longer."""
    content = mirror.client.get(mirror.key_of(half, f"{_LOG}{HINT}"))
    if content is None:
        return
    try:
        version = int(json.loads(content.data)["version"])
    except (ValueError, KeyError, TypeError):
        return
    name = f"{_LOG}{version:020d}.checkpoint.parquet"
    if newest_entry(half) >= version and (
        (half / name).exists() or mirror.fetch(mirror.key_of(half, name), half / name)
    ):
        durable.write_text(half / _LOG / HINT, content.data.decode())


def _is_there(path: Path, item: ListedObject) -> bool:
    """Whether a file is there. What it holds never changes under its name."""
    return path.is_file() and path.stat().st_size == item.size


def _require_same(mirror: Mirror, half: Path, newest: int, entries: dict[int, ListedObject]) -> None:
    """ConflictError when the mirror has an entry that the store has not, or has otherwise."""
    item = entries.get(newest)
    if item is None and entries and newest < min(entries):
        return
    if item is not None:
        text, path = entry_of(mirror, half, newest), entry_path(half, newest)
        here = path.read_text(encoding="utf-8")
        if text is not None and is_same_commit(text, here):
            if text != here:  # a purge has written it again
                replace_entry(path, text)
            return
    raise ConflictError(
        f"{half}: its log is not that of {mirror.url}: version {newest} differs. Nothing of this half was changed.",
        hint="hybrid warehouse sync, if this home writes the warehouse; else pull into an empty home: --home DIR",
    )


def set_aside_dropped(home: Home, mirror: Mirror, tables: Sequence[str]) -> list[str]:
    """Move the tables aside that the store does not list any more: they were dropped there. Their names."""
    names = [name for name in home.definitions.names() if name not in tables]
    for name in names:
        _set_aside(home, mirror, name)
    return names


def _set_aside(home: Home, mirror: Mirror, table: str) -> None:
    aside = folder_aside(home, table)
    with locked(home, halves_of(mirror.folder / table)):
        durable.rename(mirror.folder / table, aside)
