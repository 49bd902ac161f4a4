"""Copies a warehouse from an object store into a home, as its mirror, and takes it over if asked.

A half's log is listed before its data files, and REALTIME's before OFFLINE's: what a listed entry needs is there then.
Files come before the entries that name them, OFFLINE before REALTIME, and a table's definition comes last. So a pull
that is killed leaves nothing that a query would answer from in part, and the next one continues.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.catalog.schema_files import SCHEMAS_FOLDER
from hybrid.errors import ConflictError, DataError
from hybrid.lake.checkpoint import HINT
from hybrid.lake.entry import commit_info, entry_text, put_entry, unknown_outcome
from hybrid.lake.entry_file import Put, link_entry
from hybrid.lake.lineage_archive import ARCHIVE_ENDING, archive_file
from hybrid.lake.log_entries import entry_path, newest_entry
from hybrid.lake.store_log import catch_up
from hybrid.operations.tables.drop import DROPPED, MOMENT
from hybrid.operations.warehouse.home_mirror import (
    WarehouseReport,
    halves_of,
    locked,
    refuse_running,
    require_mirror,
)
from hybrid.progress import counted
from hybrid.runtime import durable
from hybrid.store.mirror import (
    DEFINITION_FILE,
    Mirror,
    for_all,
    half_keys,
    is_pulled_in_part,
    key_file,
    mark,
    read_mark,
)
from hybrid.store.published_definition import PublishedTable, published_tables, rewrite_definition
from hybrid.store.store_client import ListedObject

if TYPE_CHECKING:
    from hybrid.home.home import Home

_LOG = "_delta_log/"
_ENTRY = re.compile(r"_delta_log/(\d{20})\.json")
_ATTEMPTS = 20


@dataclass(frozen=True)
class _HalfListing:
    """What the store has of a half, by paths below it: its log as listed first, and its data files as listed then."""

    half: Path
    log: Sequence[ListedObject]
    data: Sequence[ListedObject]

    @property
    def entries(self) -> dict[int, ListedObject]:
        """The log's entries by version."""
        return {int(match[1]): item for item in self.log if (match := _ENTRY.search(item.key))}


def pull_warehouse(home: Home, *, take_over: bool = False) -> WarehouseReport:
    """Bring what the store has into the home. `take_over`: this home writes the warehouse from now on.

    ConflictError for a home with tables of its own, and while a server of the home runs.
    """
    mirror = require_mirror(home)
    refuse_running(home, "hybrid warehouse pull")
    if read_mark(mirror.folder) is None and any(mirror.folder.glob(f"[!.]*/{DEFINITION_FILE}")):
        raise ConflictError(
            f"{mirror.folder} has tables of its own. Nothing was changed.", hint="Pull into another home: --home DIR"
        )
    claim = mirror.ownership.look()
    if claim is None:
        raise ConflictError(f"There is no warehouse at {mirror.url}.", hint="Check the setting 'warehouse'.")
    is_mine = mirror.ownership.is_mine(claim)
    mark(mirror.folder, mirror.url, is_pulling=take_over or is_pulled_in_part(mirror.folder))
    before = mirror.ownership.take_over() if take_over else None
    published = published_tables(mirror)
    if take_over:
        for_all(lambda table: rewrite_definition(mirror, table.name), published)
    files = [file for table in published for file in pull_table(home, mirror, table)]
    _pull_schemas(mirror)
    tables = [table.name for table in published]
    # What the home that writes has and the store does not list is new, not dropped: see `sync`.
    gone = [] if is_mine else _set_aside_dropped(home, mirror, tables)
    mark(mirror.folder, mirror.url)
    if take_over:
        for name in tables:
            for half in halves_of(mirror.folder / name):
                fence_half(home, mirror, half)
    is_mine = is_mine or take_over
    size = sum(item.size for item in files)
    words = f"{counted(len(tables), 'table')} of {mirror.url}: {counted(len(files), 'file')}, {size} bytes"
    sentence = f"Pulled {words}." if files or gone else f"Everything is there already: {words}."
    if before is not None:
        sentence += f" This home writes the warehouse now, in the place of {before.owner.words}."
    elif not is_mine:
        sentence += " Another home writes it: this is a copy to read."
    return WarehouseReport(tuple(tables), len(files), size, sentence, bool(files or gone or before))


def pull_table(home: Home, mirror: Mirror, table: PublishedTable) -> list[ListedObject]:
    """Bring one table; what was downloaded of it."""
    keys, folder = table.halves, mirror.folder / table.name
    if (there := half_keys(folder)) and any(keys.get(half) != key for half, key in there.items()):
        _set_aside(home, mirror, table.name)  # it was dropped and created again
    durable.make_folder(folder)
    for name, key in keys.items():
        durable.write_text(key_file(folder / name), key)
    halves = [folder / name for name in sorted(keys)]  # OFFLINE, REALTIME
    logs = {half: mirror.client.list_below(mirror.key_of(half, _LOG.rstrip("/"))) for half in reversed(halves)}
    fetched = list[ListedObject]()
    for half in halves:
        data = [item for item in mirror.client.list_below(mirror.key_of(half)) if f"/{_LOG}" not in item.key]
        with locked(home, [half]):
            fetched += _pull_half(home, mirror, _HalfListing(half, logs[half], data))
    text = json.dumps(table.document, indent=1)
    path = folder / DEFINITION_FILE
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        durable.write_text(path, text)
    return fetched


def _pull_half(home: Home, mirror: Mirror, listing: _HalfListing) -> list[ListedObject]:
    half, entries = listing.half, listing.entries
    newest = newest_entry(half)
    if newest >= 0:
        _require_same(mirror, half, newest, entries)
    if entries and newest + 1 < min(entries):  # the store's log was cleaned beyond what is here
        shutil.rmtree(half / "_delta_log", ignore_errors=True)
        newest = -1
    prefix = f"{mirror.key_of(half)}/"
    others = [item for item in listing.log if item.key.endswith(".parquet")]
    lacking = [item for item in [*listing.data, *others] if not _is_there(half / item.key.removeprefix(prefix), item)]
    if lacking:
        home.progress.say(
            f"Downloading {half.name} of '{half.parent.name}': {counted(len(lacking), 'file')}, "
            f"{sum(item.size for item in lacking)} bytes."
        )
    for_all(lambda item: mirror.fetch(item.key, half / item.key.removeprefix(prefix)), lacking)
    (half / "_delta_log").mkdir(parents=True, exist_ok=True)
    fresh = [version for version in sorted(entries) if version > newest]
    texts = dict[int, str]()

    def read(version: int) -> None:
        content = mirror.client.get(entries[version].key)
        if content is None:
            raise DataError(f"{mirror.url}: {entries[version].key} was removed just now.", hint="Run it again.")
        texts[version] = content.data.decode()

    for_all(read, fresh)
    for version in fresh:
        if link_entry(half, version, texts[version]) is Put.UNKNOWN:
            raise unknown_outcome(half, version)
    durable.sync(half / "_delta_log")
    mirror.fetch(mirror.key_of(half, f"{_LOG}{HINT}"), half / _LOG / HINT)
    archive = f"{mirror.key_of(half)}{ARCHIVE_ENDING}"
    mirror.fetch(archive, archive_file(half))
    return [*lacking, *(entries[version] for version in fresh)]


def _is_there(path: Path, item: ListedObject) -> bool:
    """Whether a file is there. What it holds never changes under its name."""
    return path.is_file() and path.stat().st_size == item.size


def _require_same(mirror: Mirror, half: Path, newest: int, entries: dict[int, ListedObject]) -> None:
    """ConflictError when the mirror has an entry that the store has not, or has otherwise."""
    item = entries.get(newest)
    if item is None and entries and newest < min(entries):
        return
    if item is not None:
        content = mirror.client.get(item.key)
        if content is not None and content.data == entry_path(half, newest).read_bytes():
            return
    raise ConflictError(
        f"{half}: its log is not that of {mirror.url}: version {newest} differs. Nothing of this half was changed.",
        hint="hybrid warehouse sync, if this home writes the warehouse; else pull into an empty home: --home DIR",
    )


def _pull_schemas(mirror: Mirror) -> None:
    for item in mirror.client.list_below(SCHEMAS_FOLDER):
        mirror.fetch(item.key, mirror.folder / item.key)


def _set_aside_dropped(home: Home, mirror: Mirror, tables: Sequence[str]) -> list[str]:
    """Move the tables aside that the store does not list any more: they were dropped there. Their names."""
    names = [name for name in home.definitions.names() if name not in tables]
    for name in names:
        _set_aside(home, mirror, name)
    return names


def _set_aside(home: Home, mirror: Mirror, table: str) -> None:
    moment = datetime.fromtimestamp(home.now_ms() / 1000, UTC).strftime(MOMENT)
    aside = mirror.folder / DROPPED / f"{table}@{moment}"
    durable.make_folder(aside.parent)
    with locked(home, halves_of(mirror.folder / table)):
        durable.rename(mirror.folder / table, aside)


def fence_half(home: Home, mirror: Mirror, half: Path) -> None:
    """Commit an entry that changes nothing, so that whoever planned on the version before finds it taken."""
    with locked(home, [half]):
        for _ in range(_ATTEMPTS):
            catch_up(mirror, half)
            version = newest_entry(half) + 1
            text = entry_text(
                [commit_info(f"written by {mirror.ownership.words} from here on", version - 1, is_append=True)]
            )
            match put_entry(half, version, text):
                case Put.MADE:
                    durable.sync(half / "_delta_log")
                    return
                case Put.UNKNOWN:
                    raise unknown_outcome(half, version)
    raise ConflictError(f"{half}: the home that wrote the warehouse before goes on committing.", hint="Run it again.")
