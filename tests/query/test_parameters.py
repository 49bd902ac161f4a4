"""Parameters in answers: the cache and the files take them as literals, for templates, pruning and upsert."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from hybrid.errors import QueryError
from hybrid.query.engine import QueryOptions, explain, run, run_at_once
from hybrid.query.execution import Limits
from hybrid.query.tail import NoTail
from hybrid.sql.parameters import bind
from hybrid.table.boundary import Boundary
from tests.query.halves import KEY, Halves, Row, orders_spec
from tests.query.stepped import SteppedCache
from tests.query.test_cached_statements import NAMES, NOW_MS, OPTIMISTIC, cache_of_names

# The statement with parameters, their values, and the same statement with literals.
PAIRS: list[tuple[str, Any, str]] = [
    ("select * from orders where customer = :x", {"x": "ada"}, "select * from orders where customer = 'ada'"),
    ("select * from orders where customer = :x", {"x": "it's"}, "select * from orders where customer = 'it''s'"),
    ("select * from orders where customer = :x", {"x": "'hybrid mark 0'"},
     "select * from orders where customer = '''hybrid mark 0'''"),
    ("select * from orders where customer = ? and order_id = ?", ["7710000000000001", 3],
     "select * from orders where customer = '7710000000000001' and order_id = 3"),
    ("select * from orders where order_id = $n and ts >= $n", {"n": 3},
     "select * from orders where order_id = 3 and ts >= 3"),
    ("select * from orders where order_id > :n and order_id < 7", {"n": 3},
     "select * from orders where order_id > 3 and order_id < 7"),
    ("select * from orders where order_id in (:n)", {"n": [1, 2, 99]},
     "select * from orders where order_id in (1, 2, 99)"),
    ("select count(*) from orders where not order_id in (:n)", {"n": []}, "select count(*) from orders"),
    ("select count(*) from orders where customer = :x", {"x": None},
     "select count(*) from orders where customer = null"),
    ("select count(*) from orders where ts between :a and :b", {"a": 0, "b": 300},
     "select count(*) from orders where ts between 0 and 300"),
    ("select count(*) from orders where ts >= :t", {"t": datetime(1970, 1, 1, 0, 0, 0, 300_000, UTC)},
     "select count(*) from orders where ts >= 300"),
    ("select count(*) from orders where ts between :a and :b",
     {"a": date(1970, 1, 1), "b": datetime(1970, 1, 1, 0, 0, 0, 300_500)},
     "select count(*) from orders where ts between 0 and 300"),
    ("select count(*) from orders where at >= :t", {"t": datetime(1970, 1, 1, 0, 50)},
     "select count(*) from orders where at >= 3000000"),
    ("select count(*) from orders where amount > :d", {"d": Decimal("4.5")},
     "select count(*) from orders where amount > 4.5"),
    ("select count(*) from orders where amount > :d", {"d": 4.5}, "select count(*) from orders where amount > 4.5"),
    ("select count(*) from orders where order_id = :n", {"n": -1}, "select count(*) from orders where order_id = -1"),
    ("select order_id from orders order by order_id limit :n", {"n": 2},
     "select order_id from orders order by order_id limit 2"),
    ("select concat(customer, :x) as c from orders where order_id = :n", {"x": "'!", "n": 0},
     "select concat(customer, '''!') as c from orders where order_id = 0"),
]  # fmt: skip


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> SteppedCache:
    # On a busy machine the briefest statement may take longer than a server waits for it.
    tuning = replace(OPTIMISTIC, brief_s=math.inf, brief_ms_max=60_000)
    made = cache_of_names(tmp_path_factory.mktemp("parameters"), tuning)
    made.step()
    return made


def options(params: Any = None, **more: Any) -> QueryOptions:
    return QueryOptions(tail=NoTail(), now_ms=lambda: NOW_MS, params=params, **more)


def cached(cache: SteppedCache, sql: str, params: Any) -> Any:
    return cache.answers.answer(sql, NOW_MS, Limits(), lambda interrupt: None, bind(sql, params))


@pytest.mark.parametrize(("sql", "params", "same"), PAIRS)
def test_a_parameter_means_what_its_literal_means(cache: SteppedCache, sql: str, params: Any, same: str) -> None:
    expected = run(same, cache.source, options())
    answers = [run(sql, cache.source, options(params)), cached(cache, sql, params), cached(cache, sql, params)]
    for answer in answers:
        assert answer is not None
        assert (answer.column_types, sorted(map(repr, answer.rows))) == (
            expected.column_types, sorted(map(repr, expected.rows)),
        )  # fmt: skip
    assert [answer.source for answer in answers] == ["files", "cache", "cache"]


@pytest.mark.slow
def test_statements_with_other_values_share_a_template(cache: SteppedCache) -> None:
    sql = "select order_id, customer from orders where customer = :who and order_id >= :n and ts < 100000"
    asked = [(name, n) for name in NAMES if name is not None for n in range(4)]
    templates = cache.answers._templates._known
    cached(cache, sql, {"who": "ada", "n": 1})
    before = len(templates)
    for name, n in asked:
        found = cached(cache, sql, {"who": name, "n": n})
        assert found.rows == [(place, name) for place, other in enumerate(NAMES) if other == name and place >= n]
    assert len(templates) == before
    assert run_at_once(sql, options({"who": "ada", "n": 0}, cache=cache.answers)).rows == [(0, "ada")]


def test_a_template_of_a_text_is_none_of_a_number(cache: SteppedCache) -> None:
    sql = "select count(*) from orders where order_id = :n"
    assert [cached(cache, sql, {"n": value}).rows for value in (2, "2", 2.0, 2)] == [[(1,)]] * 4
    with pytest.raises(QueryError):
        cached(cache, sql, {"n": "two"})


def test_large_values_have_no_template(cache: SteppedCache) -> None:
    before = len(cache.answers._templates._known)
    for sql in (
        "select count(*) from orders where customer = :x",
        "select length(:x) n from orders where order_id = 1",
    ):
        assert cached(cache, sql, {"x": "a" * 20_001}) is not None
    assert len(cache.answers._templates._known) == before


@pytest.mark.slow
def test_files_are_pruned_by_parameters(tmp_path: Path) -> None:
    halves = Halves.create(tmp_path, orders_spec())
    for n in range(4):
        values = {"order_id": n, "customer": "ada", "amount": 1.0, "ts": n * 1000}
        halves.commit_offline([Row(values, n * 1000, n, segment=f"o{n}")], Boundary(10_000, {KEY: n + 1}))
    for sql, params in (
        ("select * from orders where ts = :n", {"n": 2000}),
        ("select * from orders where ts in (:n)", {"n": [2000]}),
        ("select * from orders where ts > ? and ts < ?", [1500, 2500]),
        ("select * from orders where ts > $a and ts <= $b",
         {"a": datetime(1970, 1, 1, 0, 0, 1, 1), "b": datetime(1970, 1, 1, 0, 0, 2)}),
    ):  # fmt: skip
        (table,) = explain(sql, halves, options(params)).tables
        files = {half.half: (half.files, sum(half.pruned.values())) for half in table.halves}
        assert files["OFFLINE"] == (1, 3), sql
        rows = run(f"EXPLAIN PLAN FOR {sql}", halves, options(params)).rows
        assert any("ruled out by WHERE" in str(row) for row in rows)


def test_a_column_that_does_not_exist_is_placed_beside_parameters(cache: SteppedCache) -> None:
    with pytest.raises(QueryError, match="Column 'nope' does not exist at line 1, column 45"):
        run("select * from orders where order_id = :n or nope = 3", cache.source, options({"n": 1}))
