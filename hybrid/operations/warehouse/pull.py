"""Copies a warehouse from an object store into a home, as its mirror, and takes it over if asked.

The order of a take-over, and what a crash after each step leaves (the next one continues; nothing is written before):
  mark the mirror as one that is being pulled
  claim the warehouse                            the old home is refused at its next look
  write each definition again                    what the old home has looked at can no longer be replaced by it
  bring the tables
  fence each half                                the old home's next commit meets the fence, and is refused
  remove what purges have removed from the store
  mark the mirror as whole
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
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
from hybrid.operations.warehouse.mirrored_tables import is_there, pull_table, set_aside_dropped
from hybrid.operations.warehouse.pinned_tables import PinnedTables
from hybrid.operations.warehouse.purged_tables import drop_purged
from hybrid.operations.warehouse.writer_sign import take_up_pauses
from hybrid.progress import counted
from hybrid.runtime import durable
from hybrid.store.mirror import DEFINITION_FILE, Mirror, for_all, is_pulled_in_part, mark, read_mark
from hybrid.store.ownership import Claim
from hybrid.store.published_definition import PublishedTable, published_tables, rewrite_definition
from hybrid.store.store_client import ListedObject

if TYPE_CHECKING:
    from pathlib import Path

    from hybrid.home.home import Home

_LOG = logging.getLogger(__name__)
_ATTEMPTS = 20


def pull_warehouse(
    home: Home, *, take_over: bool = False, beside_server: bool = False, has_all: bool = False
) -> WarehouseReport:
    """Bring what the store has into the home; if it follows, only the tables pinned to its server, unless `has_all`.

    `take_over`: as `take_over_warehouse`, with all tables. ConflictError for a home with tables of its own, and while a
    server of the home runs, unless it is that server (`beside_server`). The error of a table that cannot be brought
    comes after the others were.
    """
    mirror, claim = _begin(home, beside_server=beside_server)
    is_mine = mirror.ownership.is_mine(claim)
    if take_over or (is_mine and is_pulled_in_part(mirror.folder)):  # or one that was cut short
        return take_over_warehouse(home, beside_server=beside_server)
    mark(mirror.folder, mirror.url, is_pulling=is_pulled_in_part(mirror.folder))
    published = published_tables(mirror)
    pinned = PinnedTables(home, mirror) if is_mine or has_all else PinnedTables.of(home, mirror)
    here = pinned.begin(published)
    files, errors = _pull_tables(pinned, here, trims=not is_mine, keeps_plans=is_mine)
    if errors:
        raise errors[0]
    # What the home that writes has and the store does not list is new, not dropped: see `sync`.
    gone = [] if is_mine else set_aside_dropped(home, mirror, [table.name for table in published])
    pinned.end([table for table in published if table.purge is not None])
    mark(mirror.folder, mirror.url)
    remote = len(published) - len(here)
    are = "is" if remote == 1 else "are"
    words = f" {counted(remote, 'table')} {are} pinned to other servers." if remote else ""
    copy = "" if is_mine else " Another home writes it: this is a copy to read."
    return _report(mirror, here, files, gone, f"{words}{copy}")


def take_over_warehouse(
    home: Home,
    *,
    beside_server: bool = False,
    expected: Claim | None = None,
    claimed: Callable[[], None] = lambda: None,
) -> WarehouseReport:
    """Let this home write the warehouse from now on, with what the store has. Otherwise as `pull_warehouse`.

    `expected`: only if the warehouse is still as this claim says. `claimed` is called right after the claim. A table
    or plans that cannot be brought are logged and left out.
    """
    mirror, claim = _begin(home, beside_server=beside_server)
    mark(mirror.folder, mirror.url, is_pulling=True)
    if not mirror.ownership.is_mine(claim):
        take_up_pauses(home, mirror, claim)  # first: nothing must be ingested that was paused
    before = mirror.ownership.take_over(expected or claim)
    claimed()
    fenced = [table for table in published_tables(mirror) if not table.damage]
    for_all(lambda table: rewrite_definition(mirror, table.name), fenced)
    published = published_tables(mirror)  # what the home before has written until then, and nothing after it
    pinned = PinnedTables(home, mirror)  # all tables, whatever was pinned here
    files, errors = _pull_tables(pinned, pinned.begin(published), trims=False)
    for error in errors:
        _LOG.error("The take-over lacks a table, or its plans: %s", error)
    gone = set_aside_dropped(home, mirror, [table.name for table in published])
    for table in published:
        if not table.damage and is_there(mirror, table):
            for half in halves_of(mirror.folder / table.name):
                fence_half(home, mirror, half)
            if table.purge is not None:
                _drop_purged(home, mirror, table)
    mark(mirror.folder, mirror.url)
    place = "" if before is None else f", in the place of {before.owner.words}"
    return _report(mirror, published, files, gone, f" This home writes the warehouse now{place}.", did_something=True)


def _drop_purged(home: Home, mirror: Mirror, table: PublishedTable) -> None:
    """Remove what purges have removed from the store: a revert would bring its rows back from the files here.

    An error is logged, since it must not end a take-over: reverts ask the store, too, and the next purge reads the
    files.
    """
    try:
        drop_purged(home, mirror, table)
    except HybridError as error:
        _LOG.error("What purges have removed from '%s' may still be at this home: %s", table.name, error)


def _begin(home: Home, *, beside_server: bool) -> tuple[Mirror, Claim]:
    """The mirror, and who writes the warehouse. ConflictError where there is none, and for a home with own tables."""
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
    return mirror, claim


def _report(
    mirror: Mirror,
    published: Sequence[PublishedTable],
    files: Sequence[ListedObject],
    gone: Sequence[str],
    words: str,
    *,
    did_something: bool = False,
) -> WarehouseReport:
    tables, size = [table.name for table in published], sum(item.size for item in files)
    counts = f"{counted(len(tables), 'table')} of {mirror.url}: {counted(len(files), 'file')}, {size} bytes"
    sentence = f"Pulled {counts}." if files or gone else f"Everything is there already: {counts}."
    is_new = bool(files or gone or did_something)
    return WarehouseReport(tuple(tables), len(files), size, f"{sentence}{words}", is_new)


def _pull_tables(
    pinned: PinnedTables, published: Sequence[PublishedTable], *, trims: bool, keeps_plans: bool = False
) -> tuple[list[ListedObject], list[HybridError]]:
    """Bring tables and schemas; what was downloaded, and the errors of tables that could not be brought."""
    files, errors = list[ListedObject](), list[HybridError]()
    for table in published:
        try:
            files += pull_table(pinned.home, pinned.mirror, table, trims=trims, keeps_plans=keeps_plans)
            pinned.brought(table.name)
        except HybridError as error:
            errors.append(error)
    _pull_schemas(pinned.mirror, trims=trims)
    return files, errors


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
        catch_up(mirror, half)
        for _ in range(_ATTEMPTS):  # a version that is taken lets the mirror catch up
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
