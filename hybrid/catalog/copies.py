"""Tells a catalog from its copies: what it records about processes holds only where they run.

A copied home has a copied catalog. The processes that it names serve the home that was copied, not this one.
"""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from hybrid.catalog.schema import INGESTION, ORIGIN, ROLES, RUNS

_COPIED = "Its process runs on the home that this one was copied from; run it again here if it is wanted."


def forget_other_processes(engine: sa.Engine, home: Path) -> None:
    """In a copied catalog: forget the server's processes, and mark runs of commands that were under way INTERRUPTED.

    A run of a server stays RUNNING: the next server of the copy takes it up, as it does after a crash.
    """
    found = home.stat()
    here = f"{found.st_dev}:{found.st_ino}"
    with engine.connect() as connection:
        known = connection.execute(sa.select(ORIGIN.c.folder)).scalar()
    if known == here:
        return
    with engine.begin() as connection:
        connection.execute(ORIGIN.delete())
        connection.execute(ORIGIN.insert().values(folder=here))
        if known is None:  # a new catalog, or one of an older version
            return
        for table in (ROLES, INGESTION):
            connection.execute(table.delete())
        commands = RUNS.update().where(RUNS.c.state == "RUNNING", RUNS.c.verb.is_(None))
        connection.execute(commands.values(state="INTERRUPTED", result=_COPIED))
