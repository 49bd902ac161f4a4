"""The home that a catalog in a database belongs to.

The records of processes are valid in one place only, so one home owns a catalog, and one copy of it. Whoever opens the
catalog is checked. A copy takes it over when the other one gives no sign of life; that one may only have been
paused, so the database itself refuses whatever it writes afterwards (`schema.guard_owner`).
"""

from __future__ import annotations

import re
import socket
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from hybrid.catalog import schema
from hybrid.catalog.copies import forget_processes
from hybrid.catalog.database import lost_owner, shown_url
from hybrid.catalog.schema import ORIGIN, ROLES
from hybrid.catalog.sqlite_file import remove_taken_in, take_in
from hybrid.clock import read_clock, wall_clock_ms
from hybrid.errors import ConflictError, MachineError, UsageError
from hybrid.runtime import durable

if TYPE_CHECKING:
    from hybrid.store.ownership import WarehouseOwner

OWNER_FILE = "catalog.id"  # a home's id: it owns its catalog in a database by it
_ID = re.compile(r"[0-9a-f]{32}")
# A server that gave a sign of life this recently is taken to be alive. It gives one each second.
_ALIVE_MS = 20_000


@dataclass(frozen=True)
class Owner:
    """A home as the owner of a catalog: its id, the place of its folder, and the words for that place."""

    id: str
    place: str
    words: str

    @classmethod
    def of(cls, home: Path) -> Owner:
        """The owner for a home's folder. Its id is made at the first use. MachineError for a damaged one.

        A place is the folder's device and inode, on the system since its start: the same for all containers that mount
        the folder, whatever their host names and paths, and another for a copy or a cloned machine.
        """
        status = home.stat()
        place = f"{read_clock().boot}:{status.st_dev}:{status.st_ino}"
        return cls(home_id(home), place, f"{socket.gethostname()}:{home.resolve()}")

    @property
    def key(self) -> str:
        """What must be the same for a process to work with the catalog."""
        return f"{self.id} {self.place}"


def home_id(home: Path) -> str:
    """The id of a home, which is made at the first use. A copy of the folder has it too. MachineError if damaged."""
    path = home / OWNER_FILE
    if not path.exists():
        durable.create_text(path, uuid.uuid4().hex)
    id_ = path.read_text(encoding="utf-8", errors="replace").strip()
    if _ID.fullmatch(id_) is None:
        raise MachineError(
            f"{path} holds no id of a home.",
            hint="Remove it. With a catalog in a database: restore it, the first word of SELECT folder FROM origin, or "
            "name an empty database.",
        )
    return id_


def warehouse_owner(home: Path) -> WarehouseOwner:
    """The home as the writer of a warehouse on an object store."""
    from hybrid.store.ownership import WarehouseOwner  # a client of stores, which few homes have

    durable.make_private(home)
    return WarehouseOwner(home_id(home), f"{socket.gethostname()}:{home.resolve()}")


def claim_database(engine: sa.Engine, home: Path, owner: Owner) -> None:
    """Make the tables, and make a new catalog the home's, with what its SQLite file holds, which is removed then.

    UsageError when the catalog belongs to another home, and for the tables of another application; ConflictError when
    it belongs to a copy of this home whose server runs. Nothing is changed then.
    """
    address = shown_url(engine.url)
    with engine.begin() as connection:
        schema.lock(connection)
        _require_utf8(connection, address)
        recorded = _recorded(connection, address)
        is_new, is_same = recorded is None, _is_of(recorded, owner)
        if recorded is not None and not is_same:
            _require_free(connection, recorded, owner, address)
        schema.make_tables(connection)
        if not is_same:
            schema.await_writers(connection)
            connection.execute(ORIGIN.delete())
            connection.execute(ORIGIN.insert().values(folder=f"{owner.key} {owner.words}"))
            forget_processes(connection)
        if is_new:
            take_in(home, connection, owner.id)
    remove_taken_in(home, owner.id)  # also what a process that was killed here had left


def require_owner(engine: sa.Engine, owner: Owner) -> None:
    """MachineError when another copy of the home has taken the catalog over."""
    with engine.connect() as connection:
        recorded = connection.execute(sa.select(ORIGIN.c.folder)).scalar()
    if not _is_of(recorded, owner):
        raise lost_owner(shown_url(engine.url))


def _is_of(recorded: str | None, owner: Owner) -> bool:
    return recorded is not None and recorded.startswith(f"{owner.key} ")


def _require_utf8(connection: sa.Connection, address: str) -> None:
    encoding = connection.exec_driver_sql("SHOW server_encoding").scalar()
    if encoding != "UTF8":
        raise UsageError(
            f"The database {address} has the encoding {encoding}, which lacks characters that texts of runs may hold.",
            hint="CREATE DATABASE hybrid ENCODING 'UTF8' TEMPLATE template0",
        )


def _recorded(connection: sa.Connection, address: str) -> str | None:
    """The recorded owner; None in a schema without a catalog. UsageError for another application's tables."""
    inspector = sa.inspect(connection)
    names = {*inspector.get_table_names(), *inspector.get_view_names()}
    if ORIGIN.name in names and {column["name"] for column in inspector.get_columns(ORIGIN.name)} == {"folder"}:
        return connection.execute(sa.select(ORIGIN.c.folder)).scalar()
    foreign = sorted(names.intersection(schema.METADATA.tables))
    if foreign:
        raise UsageError(
            f"The database {address} has tables of another application: {', '.join(foreign)}. Nothing was changed.",
            hint="Give the catalog a database of its own (CREATE DATABASE), or a schema: ?options=-csearch_path%3DNAME",
        )
    return None


def _require_free(connection: sa.Connection, recorded: str, owner: Owner, address: str) -> None:
    id_, _, rest = recorded.partition(" ")
    words = rest.partition(" ")[2] or rest
    if id_ != owner.id:
        raise UsageError(
            f"The catalog {address} belongs to another home, {words}.",
            hint="Give each home a database of its own (CREATE DATABASE), or a schema: ?options=-csearch_path%3DNAME",
        )
    newest = connection.execute(sa.select(sa.func.max(ROLES.c.beat_ms))).scalar()
    age_ms = None if newest is None else wall_clock_ms() - newest
    if age_ms is not None and age_ms < _ALIVE_MS:
        # No wrong request: after a restart of the machine the next attempt succeeds, so systemd may try again.
        raise ConflictError(
            f"A server of {words} used the catalog {address} {age_ms / 1000:.0f} s ago. "
            "This home is a copy of that one, or the machine was started again.",
            hint=f"Wait {_ALIVE_MS // 1000} s. If it goes on, stop it; or rm {OWNER_FILE}, and name another database.",
        )
