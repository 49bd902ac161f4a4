"""A catalog in an SQLite file: its engine, and the way into and out of one for the rows of a catalog in a database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa

from hybrid.catalog import schema
from hybrid.catalog.schema import CLOCK, CONNECTORS, INGESTION, ORIGIN, PAUSES, ROLES
from hybrid.runtime import durable
from hybrid.runtime.disk import sqlite_error

FILE = "catalog.db"  # a home's catalog in SQLite
# What is valid in one place only: the processes, and the place.
_OF_PLACE = (ORIGIN, ROLES, INGESTION)
_ROWS = 100  # per insertion: a row may have megabytes
# What people have set, and what the clock is compared with: no repeated work brings it back.
_STATES = (PAUSES, CONNECTORS, CLOCK)


@contextmanager
def sqlite_engine(path: Path) -> Iterator[sa.Engine]:
    """An engine of a catalog's file, whose tables are made. MachineError for a damaged one, or a full disk."""
    engine = sa.create_engine(f"sqlite:///{path}")
    sa.event.listen(engine, "connect", partial(_tune, durable.is_enabled(path)))
    sa.event.listen(engine, "handle_error", _raise_machine_error)
    try:
        schema.prepare(engine)
        yield engine
    except sqlite3.Error as error:  # from the setup of a connection
        raise sqlite_error(error, path) or error from error


def _raise_machine_error(context: sa.engine.ExceptionContext) -> None:
    """Raise an error of the machine as a HybridError that names the disk and the remedy."""
    error, engine = context.original_exception, context.engine
    if isinstance(error, sqlite3.Error) and engine is not None and engine.url.database:
        machine_error = sqlite_error(error, Path(engine.url.database))
        if machine_error is not None:
            raise machine_error from error


def _tune(is_durable: bool, connection: Any, _record: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA busy_timeout=10000")
    # FULL: an acknowledged job survives a power failure.
    cursor.execute(f"PRAGMA synchronous={'FULL' if is_durable else 'NORMAL'}")
    cursor.execute("PRAGMA secure_delete=ON")  # a purge removes values: none may remain in a free page
    cursor.close()


def take_in(home: Path, target: sa.Connection, owner_id: str) -> None:
    """Copy what a home's file holds, if there is one, into the catalog of `owner_id`.

    The file is marked first. A mark alone says nothing, as the copy may fail; with the copy committed, it tells the
    file from one that the home began later. A home that uses the file again removes the mark (`copies`).
    """
    path = home / FILE
    if not path.exists():
        return
    with sqlite_engine(path) as engine:
        try:
            with engine.begin() as connection:
                connection.execute(ORIGIN.delete())
                connection.execute(ORIGIN.insert().values(folder=_mark(owner_id)))
            with engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
                _copy_rows(connection, target)
        finally:
            engine.dispose()


def take_in_states(damaged: Path, target: sa.Engine) -> bool:
    """Copy pauses, states of connectors and the clock from a damaged file, as far as they can be read.

    Returns whether all pauses and connectors could be.
    """
    is_complete = True
    for table in _STATES:
        rows = list[dict[str, Any]]()
        try:
            with closing(sqlite3.connect(f"file:{quote(str(damaged))}?{_reading(damaged)}", uri=True)) as connection:
                connection.row_factory = sqlite3.Row
                for row in connection.execute(f'SELECT * FROM "{table.name}"'):
                    rows.append({name: row[name] for name in row.keys() if name in table.c})  # noqa: SIM118
        except sqlite3.Error:
            is_complete = is_complete and table is CLOCK
        for values in rows:
            try:
                with target.begin() as written:
                    written.execute(table.insert().values(values))
            except (sa.exc.SQLAlchemyError, TypeError, ValueError):  # a value that no catalog has
                is_complete = is_complete and table is CLOCK
    return is_complete


def _reading(path: Path) -> str:
    """How a file is opened that must not change; its journal, where it has one, is read, too."""
    return "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "mode=ro&immutable=1"


def remove_taken_in(home: Path, owner_id: str) -> None:
    """Remove the file whose rows are in the catalog of `owner_id`: values that a purge removes must not stay in it."""
    path = home / FILE
    if not path.exists() or not _is_marked(path, owner_id):
        return
    for ending in ("-wal", "-shm", ""):  # the file itself last: while it is there, this is not complete
        path.with_name(f"{path.name}{ending}").unlink(missing_ok=True)
    durable.sync(home)


def _mark(owner_id: str) -> str:
    return f"moved to {owner_id}"


def _is_marked(path: Path, owner_id: str) -> bool:
    """Whether a file was taken in. One that cannot be read stays: `hybrid doctor` says so."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True)) as connection:
        return connection.execute("SELECT folder FROM origin").fetchall() == [(_mark(owner_id),)]
    return False


def write_copy(engine: sa.Engine, copy: sqlite3.Connection) -> None:
    """Write a catalog that is in a database, as it is at one moment, to an empty SQLite database."""
    target = sa.create_engine("sqlite://", creator=lambda: copy, poolclass=sa.StaticPool)
    source = engine.execution_options(isolation_level="REPEATABLE READ")
    with source.connect() as connection, target.begin() as written:
        schema.METADATA.create_all(written)
        _copy_rows(connection, written)


def _copy_rows(source: sa.Connection, target: sa.Connection) -> None:
    """Copy the rows about runs, tables and connectors."""
    for table in schema.METADATA.sorted_tables:
        if table in _OF_PLACE:
            continue
        for rows in source.execute(sa.select(table)).mappings().partitions(_ROWS):
            target.execute(table.insert(), [dict(row) for row in rows])
