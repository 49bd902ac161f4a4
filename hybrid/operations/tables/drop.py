"""Drops a table so that it can be restored, lists dropped tables, or purges them for good.

A dropped table's folder is moved aside with its definition, and named by the table and the time. A copy that is purged
gets another name first: a purge that crashes leaves nothing that could be restored in part.
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half
from hybrid.errors import ConflictError, HybridError, NotFoundError
from hybrid.lake.layout import TableLayout
from hybrid.lake.lock import half_lock
from hybrid.operations.tables.creation_lock import creation_lock
from hybrid.runtime import durable
from hybrid.runtime.sentence_repr import shown_as
from hybrid.store.mirror import half_keys, mirror_at
from hybrid.table.columns import bookkeeping

if TYPE_CHECKING:
    from hybrid.home.home import Home

_DROPPED = ".dropped"
_PURGING = ".purging"  # the ending of a copy whose files are being removed
_MOMENT = "%Y%m%dT%H%M%S.%fZ"


@shown_as("{0.name}: {0.state}, {0.rows} rows")
@dataclass(frozen=True)
class DroppedTable:
    """A dropped copy of a table. `undrop_table` restores it by its `name`, TABLE@TIME.

    `rows` are those stored in its halves, None where a log cannot be read; `bytes` are those of all its files.
    `state` is DROPPED, or PURGING for the rest of a purge that did not end, which cannot be restored.
    """

    name: str
    table: str
    dropped_at: str | None
    rows: int | None
    bytes: int
    state: str


def drop_table(home: Home, name: str, *, purge: bool = False) -> str:
    """Drops the table; the sentence says where its data is kept. ConflictError when operations in progress do not end.

    `purge` also removes copies dropped earlier under this name, even where there is no such table now. TABLE@TIME
    names one of these copies alone.
    """
    copies = dropped_copies(home, name) if purge else []
    if copies and home.definitions.find(name) is None:
        return _removed(name.partition("@")[0], copies, with_table=False)
    spec = home.spec(name)
    name, layout = spec.name, home.layout(spec.name)
    home.definitions.require_writable()
    aside = folder_aside(home, name)
    with ExitStack() as locks:
        for half in sorted(spec.halves):
            timeout_s = home.settings.lock_timeout_s
            lock = half_lock(layout.lock(half), jvm_pid=None, timeout_s=timeout_s, waiting=home.progress.say)
            locks.enter_context(lock)
        durable.rename(layout.root, aside)  # atomic, so that a purge that crashes leaves no partial table
    withdraw_dropped(home, name, aside)
    if not purge:
        return f"Dropped table '{name}'; its data is kept in {aside}. `hybrid table undrop {name}` brings it back."
    remove_copy(aside)
    return _removed(name, [path for path in dropped_copies(home, name) if path != aside], with_table=True)


def folder_aside(home: Home, name: str) -> Path:
    """Where a table is moved that is dropped now; the folder above is made."""
    moment = datetime.fromtimestamp(home.now_ms() / 1000, UTC).strftime(_MOMENT)
    aside = home.settings.warehouse / _DROPPED / f"{name}@{moment}"
    durable.make_folder(aside.parent)
    return aside


def _removed(name: str, copies: list[Path], *, with_table: bool) -> str:
    """Removes dropped copies; returns a sentence that names them."""
    for path in copies:
        remove_copy(path)
    words = ", ".join(path.name for path in copies)
    if not with_table:
        return f"The dropped copies of table '{name}' are gone: {words}."
    also = f", and so are the copies that were dropped before: {words}" if copies else ""
    return f"Table '{name}' and all its data are gone{also}."


def remove_copy(path: Path) -> None:
    """Removes a dropped copy for good. ConflictError when it was restored meanwhile."""
    doomed = path if path.name.endswith(_PURGING) else path.with_name(f"{path.name}{_PURGING}")
    if doomed != path:
        try:
            durable.rename(path, doomed)
        except FileNotFoundError as error:
            raise ConflictError(
                f"The dropped copy '{path.name}' was restored or removed by another command.",
                hint="hybrid table list --dropped",
            ) from error
    _remove_on_store(doomed)
    shutil.rmtree(doomed)
    durable.sync(doomed.parent)  # so that a power failure does not bring the name back


def _remove_on_store(doomed: Path) -> None:
    """Delete a copy's halves on the warehouse's store, but for those that the live table or another copy has.

    Nothing in a mirror to read: the store belongs to another home.
    """
    mirror = mirror_at(doomed)
    if mirror is None or not mirror.ownership.is_mine():
        return
    from hybrid.store.published_definition import published_table

    name = doomed.name.partition("@")[0]
    published = published_table(mirror, name)
    # The live table last: what is brought back meanwhile is seen in one of the two places.
    folders = [path.parent for path in mirror.folder.glob(f"{_DROPPED}/*/*.key") if path.parent != doomed]
    folders += [path.parent for path in mirror.folder.glob(f"{name}/*.key")]
    kept = {key for folder in folders for key in half_keys(folder).values()}
    kept |= set(published.halves.values()) if published is not None else set()
    mirror.delete_halves(name, sorted(set(half_keys(doomed).values()) - kept))


def withdraw_dropped(home: Home, name: str, copy: Path) -> bool:
    """Let the store no longer list a table that was dropped into this copy; whether it did.

    Nothing when the name is that of a table again, or the store lists another one.
    """
    with creation_lock(home.layout(name), home.settings.lock_timeout_s, home.progress):
        if home.definitions.find(name) is not None or not copy.is_dir():
            return False
        return home.definitions.withdraw(name, half_keys(copy))


def dropped_copies(home: Home, name: str) -> list[Path]:
    """The folders of dropped tables of this name, oldest first; of TABLE@TIME the one copy."""
    found = all_copies(home)
    return [path for path in found if path.name == name or path.name.rpartition("@")[0] == name]


def all_copies(home: Home) -> list[Path]:
    """The folders of all dropped tables, by name and time."""
    found = (home.settings.warehouse / _DROPPED).glob("*@*")
    return sorted(found, key=lambda path: path.name.rpartition("@"))  # t2@... comes before t20@...


def copy_names(home: Home, table: str) -> list[str]:
    """The names of a table's dropped copies, oldest first, as `undrop_table` accepts them."""
    return [path.name for path in dropped_copies(home, table)]


def dropped_tables(home: Home) -> list[DroppedTable]:
    """All dropped copies, by name and time."""
    home.table_names()  # NotFoundError when there is no home
    return [_dropped_table(path) for path in all_copies(home)]


def _dropped_table(path: Path) -> DroppedTable:
    table, _, ending = path.name.rpartition("@")
    moment = ending.removesuffix(_PURGING)
    try:
        dropped_at = datetime.strptime(moment, _MOMENT).replace(tzinfo=UTC).isoformat(timespec="milliseconds")
    except ValueError:  # a folder that somebody else has put there
        dropped_at = None
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    if ending != moment:
        return DroppedTable(path.name, table, dropped_at, None, size, "PURGING")
    return DroppedTable(path.name, table, dropped_at, _stored_rows(table, TableLayout(path)), size, "DROPPED")


def _stored_rows(table: str, layout: TableLayout) -> int | None:
    from hybrid.lake.log import open_half

    rows = 0
    for half in Half:
        if layout.half(half).is_dir():
            try:
                files = open_half(layout.half(half)).files
            except HybridError:
                return None
            rows += sum(file.rows for file in files if file.segment not in bookkeeping(table))
    return rows


def undrop_table(home: Home, name: str) -> str:
    """Restores the table of this name that was dropped last, or the older copy that `NAME@TIME` names."""
    home.table_names()  # NotFoundError when there is no home
    table = name.partition("@")[0]
    copies = [path for path in dropped_copies(home, table) if not path.name.endswith(_PURGING)]
    matching = copies if name == table else [path for path in copies if path.name == name]
    if not matching:
        names = {path.name.rpartition("@")[0] for path in all_copies(home)}
        raise NotFoundError.named("Dropped table", name, names if name == table else [path.name for path in copies])
    layout = home.layout(table)
    if layout.root.exists():
        raise ConflictError(
            f"There is another table '{table}' now. Nothing was changed.", hint=f"hybrid table drop {table}"
        )
    home.definitions.require_writable()
    with creation_lock(layout, home.settings.lock_timeout_s, home.progress):
        durable.rename(matching[-1], layout.root)
        home.definitions.publish_again(table)
    other_copies = [path.name for path in copies if path != matching[-1]]
    others = f" Other copies are kept: {', '.join(other_copies)}." if other_copies else ""
    return f"Table '{table}' is back, as it was.{others}"
