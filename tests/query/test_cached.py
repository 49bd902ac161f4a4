"""The serving cache shows what the files show: the seeded lives of tables, asked both ways after every few acts."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest

from hybrid.query import tailrows
from hybrid.query.cache import answers, form, rows
from hybrid.query.engine import QueryOptions, QueryResult, run
from tests.query.halves import Halves, ListTail
from tests.query.stepped import SteppedCache
from tests.query.test_simulation import KINDS, live

NOW_MS = 1_632_700_000_000


class BothWays:
    """Asks the cache and the files; they agree, and the cache has an answer wherever it should."""

    def __init__(self) -> None:
        self.cache: SteppedCache | None = None
        self.cached = 0

    def __call__(self, halves: Halves, sql: str, tail: Any = None, **options: Any) -> QueryResult:
        tail = tail or ListTail()
        expected = run(sql, halves, QueryOptions(tail=tail, now_ms=lambda: NOW_MS, **options))
        if self.cache is None:
            self.cache = SteppedCache(halves, NOW_MS, tail)
        self.cache.tail.messages = tail.messages
        found = self.cache.ask(sql)
        if "_OFFLINE" in sql or "_REALTIME" in sql:
            assert found is None
            return expected
        assert found is not None
        self.cached += 1
        assert sorted(found.rows) == sorted(expected.rows), (sql, str(found.revision), str(expected.revision))
        assert (found.column_names, found.column_types) == (expected.column_names, expected.column_types)
        assert _read_on(found) == _read_on(expected)
        return found


def _read_on(result: QueryResult) -> str:
    """The revision without partitions of which nothing was read: a list does not know of them."""
    return re.sub(r"kafka/orders/0/\d@0,?", "", str(result.revision)).replace(",}", "}").replace(" tail={}", "")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """What pays on large tables only is done on these small ones too."""
    monkeypatch.setattr(form, "_ENUM_ROWS_MIN", 1)
    monkeypatch.setattr(rows, "_FOLD_ROWS_MIN", 5)
    monkeypatch.setattr(tailrows, "LISTED_MAX", 2)
    # Every statement runs by itself: each commit is over when it does.
    monkeypatch.setattr(rows, "_BUSY_S", -1.0)
    monkeypatch.setattr(answers, "_SMALL_S", math.inf)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(100, 101))
def test_the_cache_shows_what_the_files_show(tmp_path: Path, seed: int, kind: str) -> None:
    both = BothWays()
    live(tmp_path, both, kind, seed)
    assert both.cached > 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_cache_shows_what_the_files_show_for_long(tmp_path: Path, kind: str) -> None:
    for seed in range(103, 111):
        live(tmp_path / str(seed), BothWays(), kind, seed)
