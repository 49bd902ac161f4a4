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

from typing import TYPE_CHECKING

from hybrid.catalog.schema_files import SCHEMAS_FOLDER
from hybrid.errors import ConflictError
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
from hybrid.progress import counted
from hybrid.runtime import durable
from hybrid.store.mirror import DEFINITION_FILE, Mirror, for_all, is_pulled_in_part, mark, read_mark
from hybrid.store.published_definition import published_tables, rewrite_definition

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
    files = [file for table in published for file in pull_table(home, mirror, table, trims=not (is_mine or take_over))]
    _pull_schemas(mirror)
    tables = [table.name for table in published]
    # What the home that writes has and the store does not list is new, not dropped: see `sync`.
    gone = [] if is_mine else set_aside_dropped(home, mirror, tables)
    if take_over:
        for name in tables:
            for half in halves_of(mirror.folder / name):
                fence_half(home, mirror, half)
    mark(mirror.folder, mirror.url)
    is_mine = is_mine or take_over
    size = sum(item.size for item in files)
    words = f"{counted(len(tables), 'table')} of {mirror.url}: {counted(len(files), 'file')}, {size} bytes"
    sentence = f"Pulled {words}." if files or gone else f"Everything is there already: {words}."
    if before is not None:
        sentence += f" This home writes the warehouse now, in the place of {before.owner.words}."
    elif not is_mine:
        sentence += " Another home writes it: this is a copy to read."
    return WarehouseReport(tuple(tables), len(files), size, sentence, bool(files or gone or before))


def _pull_schemas(mirror: Mirror) -> None:
    for item in mirror.client.list_below(SCHEMAS_FOLDER):
        mirror.fetch(item.key, mirror.folder / item.key)


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
