"""Drops a table, so that it can be brought back, or purges it for good. Part of the API's layer.

A dropped table's folder moves aside, whole and with its definition, under its name and the time.
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.errors import ConflictError, NotFoundError
from hybrid.lake.lock import half_lock

if TYPE_CHECKING:
    from hybrid.api import Hybrid

_DROPPED = ".dropped"


def drop_table(home: Hybrid, name: str, *, purge: bool = False) -> str:
    """Drops the table and says where its data went. Waits for acts under way; ConflictError when they do not end."""
    spec, layout = home.spec(name), home.layout(name)
    moment = datetime.fromtimestamp(home.now_ms() / 1000, UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    aside = home.settings.warehouse / _DROPPED / f"{name}@{moment}"
    aside.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as locks:
        for half in sorted(spec.halves):
            timeout_s = home.settings.lock_timeout_s
            lock = half_lock(layout.lock(half), jvm_pid=None, timeout_s=timeout_s, waiting=home.progress.say)
            locks.enter_context(lock)
        layout.root.rename(aside)  # at once, so that a purge that dies half way leaves no half a table
    if not purge:
        return f"Dropped table '{name}'; its data is kept in {aside}. `hybrid table undrop {name}` brings it back."
    shutil.rmtree(aside)
    return f"Table '{name}' and all its data are gone."


def dropped_copies(home: Hybrid, name: str) -> list[Path]:
    """The folders of tables of that name that were dropped, oldest first."""
    return sorted((home.settings.warehouse / _DROPPED).glob(f"{name}@*"))


def undrop_table(home: Hybrid, name: str) -> str:
    """Brings back the table of that name that was dropped last."""
    dropped = home.settings.warehouse / _DROPPED
    found = dropped_copies(home, name)
    if not found:
        raise NotFoundError.named("Dropped table", name, {path.name.partition("@")[0] for path in dropped.glob("*@*")})
    layout = home.layout(name)
    if layout.root.exists():
        raise ConflictError(
            f"There is another table '{name}' now. Nothing was changed.", hint=f"hybrid table drop {name}"
        )
    found[-1].rename(layout.root)
    return f"Table '{name}' is back, as it was."
