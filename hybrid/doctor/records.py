"""Checks of the catalog, the record of runs. No data depends on it: a new one can replace a damaged one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from hybrid.catalog.catalog import Catalog
from hybrid.catalog.sqlite_file import FILE
from hybrid.doctor.findings import Checkup, Severity, now_words
from hybrid.errors import HybridError
from hybrid.operations.clock_guard import doubt_of
from hybrid.rpc.client import server_of
from hybrid.runtime import durable

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_RUNS_MAX = 1000
_PAUSE_AGAIN = "Tables and connectors that were paused are read again: hybrid connector pause TABLE [NAME]"


def check_catalog(checkup: Checkup) -> None:
    """Checks that the catalog can be read, and that no run in it waits for a dead process."""
    path, is_in_file = checkup.home.home / FILE, checkup.home.context.settings.catalog is None
    # A file beside a catalog in a database may be waiting to move there.
    if not _is_intact(checkup, path) if path.exists() else is_in_file:
        return
    try:
        _check_runs(checkup)
        _check_clock(checkup)
        if not is_in_file:
            _check_unused(checkup, path)
    except HybridError as error:  # it names the catalog, and the remedy
        checkup.found(Severity.ERROR, "catalog", str(error), hint=error.hint)
    except SQLAlchemyError as error:
        checkup.found(Severity.ERROR, "catalog", f"The catalog does not answer: {error}")


def _is_intact(checkup: Checkup, path: Path) -> bool:
    """Whether a catalog in SQLite can be looked at; it may be a new one in place of a damaged one."""
    try:
        damage = _damage(path)
    except sqlite3.Error as error:
        checkup.found(Severity.ERROR, "catalog", f"The catalog {path} cannot be opened: {error}.")
        return False
    return damage is None or _told_damage(checkup, path, damage)


def _check_unused(checkup: Checkup, path: Path) -> None:
    """Checks that no file lies beside a catalog in a database that is open by now: it was begun without the setting."""
    if path.exists():
        message = f"The catalog {path} is not used, and no purge cleans it: the setting catalog names a database."
        checkup.found(Severity.WARNING, "catalog", message, hint=f"rm {path}*, or leave the setting out")


def _check_clock(checkup: Checkup) -> None:
    doubt = doubt_of(checkup.home.context)
    if doubt is not None:
        message, hint = doubt
        what = "Retention, vacuum and compactions that drop delete markers do nothing."
        checkup.found(Severity.WARNING, "clock", f"{message} {what}", hint=hint)


def _damage(path: Path) -> str | None:
    """What is wrong with a SQLite file; None when it is intact. sqlite3.Error when it cannot be checked."""
    try:
        with closing(sqlite3.connect(path)) as connection:
            answer = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED:
            return str(error)
        raise
    return None if answer == "ok" else answer


def _told_damage(checkup: Checkup, path: Path, damage: str) -> bool:
    home = checkup.home.home
    message = (
        f"The catalog {path} is damaged ({damage}). No data depends on it; which tasks ran, and queued work, are lost."
    )
    url = server_of(home)
    if url is not None:
        hint = f"Stop the server at {url}, then: hybrid doctor --repair"
        return checkup.found(Severity.ERROR, "catalog", message, hint=hint)
    is_in_file = checkup.home.context.settings.catalog is None
    return checkup.found(Severity.ERROR, "catalog", message, mend=lambda: _begin_anew(home, path, is_in_file))


def _begin_anew(home: Path, path: Path, is_in_file: bool) -> str:
    aside = path.with_name(f"{path.name}.damaged-{now_words()}")
    for ending in ("", "-wal", "-shm"):
        beside = path.with_name(path.name + ending)
        if beside.exists():
            durable.rename(beside, aside.with_name(aside.name + ending))
    if not is_in_file:
        lost = f"What it had not moved there is lost, with any pauses and queued work. {_PAUSE_AGAIN}"
        return f"The damaged catalog is kept as {aside.name}; the one in the database goes on without it. {lost}"
    with closing(Catalog.of_home(home)) as catalog:
        is_complete = catalog.take_in_states(aside)
    if is_complete:
        return (
            f"Began a new catalog with the pauses and the states of connectors of the damaged one, which is kept as "
            f"{aside.name}. Queued work is lost: ask for it again."
        )
    lost = f"Pauses may be lost, and queued work is: ask for it again. {_PAUSE_AGAIN}"
    return f"Began a new catalog with what could be read of the damaged one, which is kept as {aside.name}. {lost}"


def _check_runs(checkup: Checkup) -> None:
    serves = server_of(checkup.home.home) is not None
    for run in checkup.home.context.catalog.runs.list(states=["RUNNING"], limit=_RUNS_MAX):
        if run.state == "INTERRUPTED":
            message = f"The process of run {run.id} ({run.type}) is gone, and it did not tell how it ended."
            hint = "Run it again: what it committed is not done twice."
            checkup.found(Severity.NOTE, "runs", message, table=run.table_name, hint=hint)
        elif run.verb is not None and not serves:
            message = f"Run {run.id} ({run.type}) was under way when its server ended."
            checkup.found(Severity.NOTE, "runs", message, table=run.table_name, hint="hybrid serve (takes it up again)")
