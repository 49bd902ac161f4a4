"""Detects copies of a catalog: its records of processes are valid only where these run.

A copied home has a copied catalog. The processes in it serve the original home, not this one.
"""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from hybrid.catalog.schema import INGESTION, ORIGIN, ROLES, RUNS

_COPIED = (
    "Its process runs on the home that this one was copied from, or ended with the machine; run it again here if it is "
    "wanted."
)


def forget_other_processes(engine: sa.Engine, home: Path) -> None:
    """In a copied catalog, forget the processes of the other home.

    A run of a server stays RUNNING: the next server of the copy resumes it, as after a crash.
    """
    status = home.stat()
    here = f"{status.st_dev}:{status.st_ino}"
    with engine.connect() as connection:
        origin = connection.execute(sa.select(ORIGIN.c.folder)).scalar()
    if origin == here:
        return
    with engine.begin() as connection:
        connection.execute(ORIGIN.delete())
        connection.execute(ORIGIN.insert().values(folder=here))
        if origin is not None:  # else a new catalog, or one of an older version
            forget_processes(connection)


def forget_processes(connection: sa.Connection) -> None:
    """Delete the server's processes, and mark running commands as INTERRUPTED."""
    for table in (ROLES, INGESTION):
        connection.execute(table.delete())
    commands = RUNS.update().where(RUNS.c.state == "RUNNING", RUNS.c.verb.is_(None))
    connection.execute(commands.values(state="INTERRUPTED", result=_COPIED))
