"""Takes a purge over in a mirror that only reads: it removes what the store no longer has, and what it has otherwise.

A purge that has ended writes its id into the table's definition on the store (docs/adr/0072). A query that reads a file
which goes begins again on the newest revision, as with any purge.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.lake.checkpoint import delete_file
from hybrid.lake.half_head import forget_head
from hybrid.lake.lineage_archive import ARCHIVE_ENDING, archive_file
from hybrid.lake.log import open_half
from hybrid.lake.store_log import set_aside_entries
from hybrid.lake.store_refresh import HalfObjects, refresh_log, remove_pull_leftovers
from hybrid.operations.warehouse.home_mirror import halves_of, locked
from hybrid.store.mirror import Mirror

if TYPE_CHECKING:
    from hybrid.home.home import Home
    from hybrid.store.published_definition import PublishedTable


def drop_purged(home: Home, mirror: Mirror, table: PublishedTable) -> bool:
    """Let the halves of a table here have no file and no values that a purge has removed from the store.

    Its plans are brought apart. False while its newest version here has files that the store has no more: it must
    follow first. Call it after everything that the store had was brought, and while nothing is brought.
    """
    is_done = True
    for half in halves_of(mirror.folder / table.name):
        with locked(home, [half]):
            is_done &= _drop_of_half(mirror, half)
        mirror.fetch(f"{mirror.key_of(half)}{ARCHIVE_ENDING}", archive_file(half))
    return is_done


def _drop_of_half(mirror: Mirror, half: Path) -> bool:
    objects = HalfObjects.of(mirror, half, mirror.client.list_below(mirror.key_of(half)))
    remove_pull_leftovers(half)
    refresh_log(mirror, half, objects)
    log = half / "_delta_log"
    for path in set_aside_entries(half):
        path.unlink(missing_ok=True)
    for path in log.glob("[0-9]*.checkpoint*.parquet"):
        if path.name not in objects.log:
            delete_file(path)
            forget_head(half)
    here = {path for path in half.glob("*/*.parquet*") if path.parent != log}
    gone = {path for path in here if str(path.relative_to(half)) not in objects.data}
    needed = gone & {Path(file.path) for file in open_half(half).files}
    for path in gone - needed:
        path.unlink(missing_ok=True)
    return not needed
