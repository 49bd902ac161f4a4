"""Copies a warehouse from an object store into a home, as its mirror, and takes it over if asked.

The order of a take-over, and what a crash after each step leaves (the next one continues; nothing is written before):
  mark the mirror as one that is being pulled
  claim the warehouse                            the old home is refused at its next look
  write each definition again                    what the old home has looked at can no longer be replaced by it
  bring the tables
  fence each half                                the old home's next commit meets the fence, and is refused
  mark the mirror as whole
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hybrid.catalog.schema_files import SCHEMAS_FOLDER
from hybrid.errors import ConflictError, HybridError
from hybrid.lake.entry import commit_info, entry_text, unknown_outcome
from hybrid.lake.entry_file import Put
from hybrid.lake.log_entries import newest_entry
from hybrid.lake.store_log import catch_up, put_through
from hybrid.operations.warehouse.home_mirror import (
    WarehouseReport,
    halves_of,
    locked,
    refuse_running,
    require_mirror,
)
from hybrid.operations.warehouse.mirrored_tables import pull_table, set_aside_dropped
from hybrid.operations.warehouse.writer_sign import read_sign, take_up_pauses
from hybrid.progress import counted
from hybrid.runtime import durable
from hybrid.store.mirror import DEFINITION_FILE, Mirror, for_all, is_pulled_in_part, mark, read_mark
from hybrid.store.ownership import Claim
from hybrid.store.published_definition import PublishedTable, published_tables, rewrite_definition
from hybrid.store.store_client import ListedObject

if TYPE_CHECKING:
    from pathlib import Path

    from hybrid.home.home import Home

_ATTEMPTS = 20


def pull_warehouse(home: Home, *, take_over: bool = False, beside_server: bool = False) -> WarehouseReport:
    """Bring what the store has into the home. `take_over`: this home writes the warehouse from now on.

    ConflictError for a home with tables of its own, and while a server of the home runs, unless it is that server
    (`beside_server`).
    """
    mirror = require_mirror(home)
    if not beside_server:
        refuse_running(home, "hybrid warehouse pull")
    is_mine = mirror.ownership.is_mine(_look(mirror))
    if is_mine and is_pulled_in_part(mirror.folder):  # a take-over that was cut short
        take_over, is_mine = True, False
    mark(mirror.folder, mirror.url, is_pulling=take_over or is_pulled_in_part(mirror.folder))
    before = _take_over(home, mirror) if take_over else None
    published = published_tables(mirror)
    if take_over:
        for_all(lambda table: rewrite_definition(mirror, table.name), published)
    trims = not (is_mine or take_over)
    files = _pull_tables(home, mirror, published, trims=trims)
    tables = [table.name for table in published]
    # What the home that writes has and the store does not list is new, not dropped: see `sync`.
    gone = [] if is_mine else set_aside_dropped(home, mirror, tables)
    if take_over:
        for half in (half for name in tables for half in halves_of(mirror.folder / name)):
            fence_half(home, mirror, half)
    mark(mirror.folder, mirror.url)
    size = sum(item.size for item in files)
    words = f"{counted(len(tables), 'table')} of {mirror.url}: {counted(len(files), 'file')}, {size} bytes"
    sentence = f"Pulled {words}." if files or gone else f"Everything is there already: {words}."
    if before is not None:
        sentence += f" This home writes the warehouse now, in the place of {before.owner.words}."
    elif not (is_mine or take_over):
        sentence += " Another home writes it: this is a copy to read."
    return WarehouseReport(tuple(tables), len(files), size, sentence, bool(files or gone or before))


def _pull_tables(home: Home, mirror: Mirror, published: Sequence[PublishedTable], *, trims: bool) -> list[ListedObject]:
    """Bring tables and schemas; what was downloaded. An error of one table comes after the others were brought."""
    files, errors = list[ListedObject](), list[HybridError]()
    for table in published:
        try:
            files += pull_table(home, mirror, table, trims=trims)
        except HybridError as error:
            errors.append(error)
    _pull_schemas(mirror, trims=trims)
    if errors:
        raise errors[0]
    return files


def _look(mirror: Mirror) -> Claim:
    """Who writes the warehouse. ConflictError where there is none, and for a home with tables of its own."""
    if read_mark(mirror.folder) is None and any(mirror.folder.glob(f"[!.]*/{DEFINITION_FILE}")):
        raise ConflictError(
            f"{mirror.folder} has tables of its own. Nothing was changed.", hint="Pull into another home: --home DIR"
        )
    claim = mirror.ownership.look()
    if claim is None:
        raise ConflictError(f"There is no warehouse at {mirror.url}.", hint="Check the setting 'warehouse'.")
    return claim


def _take_over(home: Home, mirror: Mirror) -> Claim | None:
    """Claim the warehouse, with the pauses of the home before, whose claim this is; None if this home had it."""
    before = mirror.ownership.take_over()
    sign = read_sign(mirror)
    if sign is not None and before is not None and sign.owner == before.owner.id:
        take_up_pauses(home, sign)  # before anything is ingested here
    return before


def _pull_schemas(mirror: Mirror, *, trims: bool) -> None:
    keys = [item.key for item in mirror.client.list_below(SCHEMAS_FOLDER)]
    for key in keys:
        mirror.fetch(key, mirror.folder / key)
    for path in (mirror.folder / SCHEMAS_FOLDER).glob("*.json") if trims else ():
        if f"{SCHEMAS_FOLDER}/{path.name}" not in keys:
            path.unlink()


def fence_half(home: Home, mirror: Mirror, half: Path) -> None:
    """Commit an entry that changes nothing, so that whoever planned on the version before finds it taken."""
    with locked(home, [half]):
        for _ in range(_ATTEMPTS):
            catch_up(mirror, half)
            version = newest_entry(half) + 1
            note = f"written by {mirror.ownership.words} from here on"
            text = entry_text([commit_info(note, version - 1, is_append=True)])
            match put_through(mirror, half, version, text, while_pulling=True):
                case Put.MADE:
                    durable.sync(half / "_delta_log")
                    return
                case Put.UNKNOWN:
                    raise unknown_outcome(half, version)
    raise ConflictError(f"{half}: the home that wrote the warehouse before goes on committing.", hint="Run it again.")
