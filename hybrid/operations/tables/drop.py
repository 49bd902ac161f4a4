"""Drops a table so that it can be restored, or purges it for good.

A dropped table's folder is moved aside with its definition, and named by the table and the time.
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.errors import ConflictError, NotFoundError
from hybrid.lake.lock import half_lock
from hybrid.runtime import durable

if TYPE_CHECKING:
    from hybrid.home.home import Home

_DROPPED = ".dropped"


def drop_table(home: Home, name: str, *, purge: bool = False) -> str:
    """Drops the table; the sentence says where its data is kept. ConflictError when operations in progress do not end.

    `purge` also removes copies dropped earlier under this name, even where there is no such table now.
    """
    copies = dropped_copies(home, name) if purge else []
    if copies and home.definitions.find(name) is None:
        return _removed(name, copies, with_table=False)
    spec = home.spec(name)
    name, layout = spec.name, home.layout(spec.name)
    moment = datetime.fromtimestamp(home.now_ms() / 1000, UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    aside = home.settings.warehouse / _DROPPED / f"{name}@{moment}"
    durable.make_folder(aside.parent)
    with ExitStack() as locks:
        for half in sorted(spec.halves):
            timeout_s = home.settings.lock_timeout_s
            lock = half_lock(layout.lock(half), jvm_pid=None, timeout_s=timeout_s, waiting=home.progress.say)
            locks.enter_context(lock)
        durable.rename(layout.root, aside)  # atomic, so that a purge that crashes leaves no partial table
    if not purge:
        return f"Dropped table '{name}'; its data is kept in {aside}. `hybrid table undrop {name}` brings it back."
    shutil.rmtree(aside)
    durable.sync(aside.parent)  # so that a power failure does not bring the name back
    return _removed(name, [path for path in dropped_copies(home, name) if path != aside], with_table=True)


def _removed(name: str, copies: list[Path], *, with_table: bool) -> str:
    """Removes dropped copies; returns a sentence that names them."""
    for path in copies:
        shutil.rmtree(path)
        durable.sync(path.parent)
    words = ", ".join(path.name for path in copies)
    if not with_table:
        return f"The dropped copies of table '{name}' are gone: {words}."
    also = f", and so are the copies that were dropped before: {words}" if copies else ""
    return f"Table '{name}' and all its data are gone{also}."


def dropped_copies(home: Home, name: str) -> list[Path]:
    """The folders of dropped tables of this name, oldest first."""
    folder = home.settings.warehouse / _DROPPED
    return sorted(path for path in folder.glob("*@*") if path.name.rpartition("@")[0] == name)


def copy_names(home: Home, *, table: str) -> list[str]:
    """The names of a table's dropped copies, oldest first, as `undrop_table` accepts them."""
    return [path.name for path in dropped_copies(home, table)]


def undrop_table(home: Home, name: str) -> str:
    """Restores the table of this name that was dropped last, or the older copy that `NAME@TIME` names."""
    home.table_names()  # NotFoundError when there is no home
    table = name.partition("@")[0]
    copies = dropped_copies(home, table)
    matching = copies if name == table else [path for path in copies if path.name == name]
    if not matching:
        folder = home.settings.warehouse / _DROPPED
        names = {path.name.rpartition("@")[0] for path in folder.glob("*@*")}
        raise NotFoundError.named("Dropped table", name, names if name == table else [path.name for path in copies])
    layout = home.layout(table)
    if layout.root.exists():
        raise ConflictError(
            f"There is another table '{table}' now. Nothing was changed.", hint=f"hybrid table drop {table}"
        )
    durable.rename(matching[-1], layout.root)
    other_copies = [path.name for path in copies if path != matching[-1]]
    others = f" Other copies are kept: {', '.join(other_copies)}." if other_copies else ""
    return f"Table '{table}' is back, as it was.{others}"
