"""Catalogs for tests that start no process: each new one is a copy of the first, whose tables need not be created.

Creating the tables and looking whether they are complete takes longer than most of what tests do with a catalog. A file
that exists is looked at as the product does. Tests with a JVM, a broker or a server create each catalog.
"""

from __future__ import annotations

import os
import tempfile
import uuid
from functools import cache
from pathlib import Path

import sqlalchemy as sa

from hybrid.catalog import schema

_prepare = schema.prepare


def share_catalog(is_shared: bool = True) -> None:
    """Sets what creates the tables of a catalog, in this process."""
    schema.prepare = _copied if is_shared else _prepare


def _copied(engine: sa.Engine) -> None:
    path = engine.url.database
    if engine.dialect.name == "sqlite" and path is not None and path != ":memory:":
        whole = Path(f"{path}.{uuid.uuid4().hex}")
        try:
            whole.write_bytes(_empty_catalog())
            os.link(whole, path)  # whole at once: others may open it meanwhile
            return
        except OSError:  # there, or impossible: SQLite says so
            pass
        finally:
            whole.unlink(missing_ok=True)
    _prepare(engine)


@cache
def _empty_catalog() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "catalog.db")
        engine = sa.create_engine(f"sqlite:///{path}")
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")
        _prepare(engine)
        engine.dispose()
        return path.read_bytes()
