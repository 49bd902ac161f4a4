"""The catalog in a backup: copied while it is used, and made that of another home when it is restored."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from hybrid.catalog.sqlite_file import FILE
from hybrid.home.home import Home
from hybrid.operations.erasure import ERASE
from hybrid.runtime.disk import sqlite_error

CATALOG = FILE
_UNFINISHED = (
    "It had not ended when the backup was made that this home was restored from. "
    "The segments tell what it committed; run it again if it is wanted."
)
# Rows that name a table, and are left out when the table is not restored.
_OF_TABLES = ("runs", "pauses", "connectors")
# The table of a run that belongs to all, and the types of runs that change further tables than the one they name.
ALL_TABLES = "*"
_OVER_TABLES = frozenset({ERASE, "evolve"})
_PROCESSES = ("roles", "ingestion", "origin")
_UNENDED = "state IN ('QUEUED', 'RUNNING')"
_INTERRUPT = (
    "UPDATE runs SET state = 'INTERRUPTED', result = ?, only_one = NULL, report = NULL, error = NULL, verb = NULL WHERE"
)


def copy_catalog(home: Home) -> bytes | None:
    """A home's catalog, as it is at one moment, as an SQLite file. None when the home has none.

    Runs that have not ended lose their arguments, which may hold secrets: a restored home does not run them. They are
    removed in memory, so that no file of a backup directory ever has them.
    """
    path, is_in_file = home.folder / CATALOG, home.settings.catalog is None
    if is_in_file and not path.exists():
        return None
    try:
        with closing(sqlite3.connect(":memory:", check_same_thread=False)) as copy:
            if is_in_file:
                with closing(sqlite3.connect(path, timeout=30)) as source:
                    source.backup(copy)
            else:
                home.catalog.write_copy(copy)
            with copy:
                copy.execute("PRAGMA secure_delete = ON")  # no value may remain in a free page
                if "runs" in _tables(copy):
                    copy.execute(f"UPDATE runs SET arguments = '{{}}' WHERE {_UNENDED}")
            return copy.serialize()
    except sqlite3.Error as error:
        raise sqlite_error(error, path) or error from error


def adapt_catalog(path: Path, pinned_at: Mapping[str, str], *, whole: bool) -> None:
    """Make a copied catalog that of a restored home.

    It forgets the original's processes. Runs that had not ended, or that ended after their table was pinned
    (`pinned_at`, by table), become INTERRUPTED; work over several tables when it ended after the first pin. Unless
    `whole`, rows of other tables are removed.
    """
    with closing(sqlite3.connect(path)) as connection, connection:
        present = _tables(connection)
        for table in _PROCESSES:
            if table in present:
                connection.execute(f"DELETE FROM {table}")
        if not whole:
            for table in present.intersection(_OF_TABLES):
                _keep_tables(connection, table, list(pinned_at))
        if "runs" in present:
            connection.execute(f"{_INTERRUPT} {_UNENDED}", (_UNFINISHED,))
            ended_later = f"{_INTERRUPT} table_name = ? AND finished_at > ?"
            connection.executemany(ended_later, [(_UNFINISHED, *end) for end in pinned_at.items()])
            if pinned_at:
                marks = ", ".join("?" * len(_OVER_TABLES))
                over_tables = f"{_INTERRUPT} (table_name = ? OR type IN ({marks})) AND finished_at > ?"
                first_pin = min(pinned_at.values())
                connection.execute(over_tables, (_UNFINISHED, ALL_TABLES, *sorted(_OVER_TABLES), first_pin))


def _tables(connection: sqlite3.Connection) -> set[str]:
    """The names of the tables: a catalog that was just created has none."""
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _keep_tables(connection: sqlite3.Connection, table: str, names: Sequence[str]) -> None:
    marks = ", ".join("?" * len(names))
    connection.execute(f"DELETE FROM {table} WHERE table_name NOT IN ({marks})", list(names))
