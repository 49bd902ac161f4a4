"""A catalog in PostgreSQL: its address, its engine, the home that it belongs to, and what a home brings into it."""

from __future__ import annotations

import socket
import sqlite3
import time
import uuid
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from hybrid.catalog import schema
from hybrid.catalog.copies import forget_processes
from hybrid.catalog.schema import INGESTION, LOCK, ORIGIN, ROLES
from hybrid.errors import MachineError, SpecError, UsageError
from hybrid.runtime import durable

FILE = "catalog.db"  # a home's catalog in SQLite
OWNER_FILE = "catalog.id"  # the id under which a home owns its catalog in a database

_DRIVER = "postgresql+psycopg"
_NAMES = frozenset({"postgresql", "postgres", _DRIVER})
_EXAMPLE = "postgresql://hybrid@db.example.org/hybrid"
# A database that does not answer must stop neither ingestion nor a command for long.
_CONNECT_S, _STATEMENT_MS, _LOCK_MS = 5, 30_000, 10_000
_PROCESSES = (ORIGIN, ROLES, INGESTION)
# A process that gave a sign of life this recently is taken to be alive.
_ALIVE_MS = 60_000


def database_url(text: str) -> sa.URL:
    """The URL of a catalog as a user writes it, with the driver that is used. SpecError for any other database."""
    try:
        url = sa.make_url(text)
    except (sa.exc.ArgumentError, ValueError) as error:
        raise SpecError.at("setting", "catalog", f"this is not a URL such as {_EXAMPLE}") from error
    if url.drivername not in _NAMES or not url.database:
        what = "names no database" if url.drivername in _NAMES else f"'{url.drivername}' is not supported"
        raise SpecError.at("setting", "catalog", f"{what}: PostgreSQL is, as in {_EXAMPLE}; without it SQLite is used")
    return url.set(drivername=_DRIVER)


def shown_url(url: sa.URL) -> str:
    """The URL without driver, password and options."""
    return url.set(drivername="postgresql", query={}).render_as_string(hide_password=True)


def database_engine(url: sa.URL) -> sa.Engine:
    """An engine that notices connections that were lost, and waits for none for long.

    It raises MachineError for a database that does not answer, and where the driver is not installed.
    """
    options = f"-c statement_timeout={_STATEMENT_MS} -c lock_timeout={_LOCK_MS}"
    own = url.query.get("options")  # such as a search path
    arguments: dict[str, object] = {} if "connect_timeout" in url.query else {"connect_timeout": _CONNECT_S}
    arguments["options"] = f"{options} {own if isinstance(own, str) else ' '.join(own or ())}".strip()
    try:
        engine = sa.create_engine(url.difference_update_query(["options"]), pool_pre_ping=True, connect_args=arguments)
    except ModuleNotFoundError as error:
        raise MachineError(
            f"The catalog {shown_url(url)} needs the driver psycopg, which is not installed.",
            hint="pip install 'hybrid[postgresql]'",
        ) from error
    sa.event.listen(engine, "handle_error", _raise_machine_error)
    return engine


def _raise_machine_error(context: sa.engine.ExceptionContext) -> None:
    """Raise an error of the connection or of the database's rights as one that names the database and the remedy."""
    error, engine = context.original_exception, context.engine
    dbapi: Any = context.dialect.loaded_dbapi
    if engine is None or context.is_pre_ping:  # a lost connection is replaced by a new one
        return
    address, first = shown_url(engine.url), str(error).strip().partition("\n")[0]
    if isinstance(error, dbapi.OperationalError):
        raise MachineError(
            f"The catalog {address} does not answer: {first}.",
            hint=f"psql '{address}' -c 'SELECT 1'; ingestion and queries go on without it, queued work waits",
        ) from error
    if isinstance(error, dbapi.errors.InsufficientPrivilege | dbapi.errors.InvalidSchemaName):
        raise MachineError(
            f"The catalog {address} refuses what hybrid needs: {first}.",
            hint="Create the schema, and let its user create tables: GRANT CREATE, USAGE ON SCHEMA ... TO ...",
        ) from error


def claim_database(engine: sa.Engine, home: Path) -> None:
    """Make a new catalog in a database the home's, with what its SQLite file holds, which is removed then.

    UsageError when the catalog belongs to another home, or to a copy of this one whose server runs.
    """
    owner, place = _owner(home), f"{socket.gethostname()}:{home.resolve()}"
    with engine.begin() as connection:
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK)))
        recorded = connection.execute(sa.select(ORIGIN.c.folder)).scalar()
        if recorded == f"{owner} {place}":
            return
        if recorded is not None:
            _require_owner(connection, str(recorded), owner, shown_url(engine.url))
            connection.execute(ORIGIN.delete())
            forget_processes(connection)
        connection.execute(ORIGIN.insert().values(folder=f"{owner} {place}"))
        is_moved = recorded is None and _take_in(home / FILE, connection)
    if is_moved:  # values that a purge removes must not remain in it
        for ending in ("", "-wal", "-shm"):
            (home / f"{FILE}{ending}").unlink(missing_ok=True)
        durable.sync(home)


def _require_owner(connection: sa.Connection, recorded: str, owner: str, address: str) -> None:
    id_, _, place = recorded.partition(" ")
    if id_ != owner:
        raise UsageError(
            f"The catalog {address} belongs to another home, {place}.",
            hint="Give each home a database of its own (CREATE DATABASE), or a schema: ?options=-csearch_path%3DNAME",
        )
    newest = connection.execute(sa.select(sa.func.max(ROLES.c.beat_ms))).scalar()
    if newest is not None and time.time_ns() // 1_000_000 - newest < _ALIVE_MS:
        raise UsageError(
            f"A server of {place} uses the catalog {address}, and this home is a copy of that one.",
            hint=f"Stop that server and wait a minute; or rm {OWNER_FILE} here, and name another database.",
        )


def _owner(home: Path) -> str:
    """The id of a home, made at its first use of a database."""
    path = home / OWNER_FILE
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(uuid.uuid4().hex)
        durable.sync(path)
        durable.sync(home)
    except FileExistsError:
        pass
    return path.read_text(encoding="utf-8").strip()


def _take_in(file: Path, target: sa.Connection) -> bool:
    """Copy what a catalog in SQLite holds. False where there is none."""
    if not file.exists():
        return False
    source = sa.create_engine(f"sqlite:///{file}")
    try:
        schema.prepare(source)
        with source.connect() as connection:
            _copy_rows(connection, target)
    finally:
        source.dispose()
    return True


def write_copy(engine: sa.Engine, copy: sqlite3.Connection) -> None:
    """Write the catalog, as it is at one moment, to an empty SQLite database."""
    target = sa.create_engine("sqlite://", creator=lambda: copy, poolclass=sa.StaticPool)
    source = engine.execution_options(isolation_level="REPEATABLE READ")
    with source.connect() as connection, target.begin() as written:
        schema.METADATA.create_all(written)
        _copy_rows(connection, written)


def _copy_rows(source: sa.Connection, target: sa.Connection) -> None:
    """Copy the rows about runs, tables and connectors; those about the processes are valid in one place only."""
    for table in schema.METADATA.sorted_tables:
        rows = [dict(row) for row in source.execute(sa.select(table)).mappings()] if table not in _PROCESSES else []
        if rows:
            target.execute(table.insert(), rows)
