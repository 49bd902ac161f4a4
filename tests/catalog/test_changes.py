"""A watch of the catalog sees what other connections write, and nothing else."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import sqlalchemy as sa

from hybrid.catalog.catalog import Catalog
from hybrid.catalog.changes import CatalogChanges


def test_what_others_write_is_seen_once(tmp_path: Path) -> None:
    catalog = Catalog.in_home(tmp_path)
    changes = catalog.changes()
    assert changes.are_there(), "nobody knows what was before"
    assert not changes.are_there()
    assert catalog.runs.claim() is None
    assert not changes.are_there(), "a look is no change"
    catalog.serving.beat("query", "ready")
    assert changes.are_there()
    assert not changes.are_there()
    with sqlite3.connect(tmp_path / "catalog.db") as other:
        other.execute("update roles set state = 'gone'")
    assert changes.are_there(), "written by another process"
    assert catalog.forget_journal(), "the watch holds no transaction open"
    changes.close()
    assert changes.are_there(), "begun again"


def test_another_database_is_always_looked_at() -> None:
    changes = CatalogChanges(sa.create_mock_engine("postgresql://", lambda statement: None))  # type: ignore[arg-type]
    assert changes.are_there() and changes.are_there()
