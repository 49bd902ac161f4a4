"""A watch of the catalog sees what other connections write, and nothing else."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from hybrid.catalog.catalog import Catalog


def test_what_others_write_is_seen_once(tmp_path: Path) -> None:
    catalog = Catalog.of_home(tmp_path)
    watch = catalog.write_watch()
    assert watch.has_new(), "nobody knows what was before"
    assert not watch.has_new()
    assert catalog.runs.claim() is None
    assert not watch.has_new(), "a look is no change"
    catalog.serving.beat("query", "ready")
    assert watch.has_new()
    assert not watch.has_new()
    with sqlite3.connect(tmp_path / "catalog.db") as other:
        other.execute("update roles set state = 'gone'")
    assert watch.has_new(), "written by another process"
    assert catalog.forget_journal(), "the watch holds no transaction open"
    watch.close()
    assert watch.has_new(), "begun again"
