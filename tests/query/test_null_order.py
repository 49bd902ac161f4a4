"""Nulls are larger than any value: DESC has them first and ASC last, where nothing else is written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hybrid.query.engine import QueryOptions, run
from hybrid.query.tail import NoTail
from hybrid.schema.schema import FieldKind, FieldSpec
from hybrid.schema.types import DataType
from tests.query.halves import KEY, Halves, Row, orders_spec
from tests.query.stepped import SteppedCache

NOW_MS = 1_632_700_000_000


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> SteppedCache:
    """Values 1, null, 2 in a table with null handling; `g` groups them into 1, 1, null."""
    extra = [FieldSpec(name, DataType.INT, FieldKind.DIMENSION) for name in ("v", "g")]
    halves = Halves.create(tmp_path_factory.mktemp("nulls"), replace(orders_spec(extra=extra), null_handling=True))
    found = [
        Row({"order_id": n, "customer": "ada", "amount": 1.0, "ts": n * 100, "v": v, "g": g}, n * 100, n)
        for n, (v, g) in enumerate([(1, 1), (None, 1), (2, None)])
    ]
    halves.commit_realtime(found, offsets={KEY: len(found)})
    cache = SteppedCache(halves, NOW_MS)
    cache.step()
    return cache


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("select v from orders order by v", [1, 2, None]),
        ("select v from orders order by v asc", [1, 2, None]),
        ("select v from orders order by v desc", [None, 2, 1]),
        ("select v from orders order by 1 desc", [None, 2, 1]),
        ("select v from orders order by v desc limit 1", [None]),
        ("select v from orders order by v desc nulls last", [2, 1, None]),
        ("select v from orders order by v nulls first", [None, 1, 2]),
        ("select v from orders order by v desc nulls first, order_id", [None, 2, 1]),
        ("select v as w from orders order by w desc", [None, 2, 1]),
        ("select v + 1 from orders order by v + 1 desc", [None, 3, 2]),
        ("select distinct v from orders order by v desc", [None, 2, 1]),
        ("select g from orders group by g order by g desc", [None, 1]),
        ("select g from orders group by g order by max(g) desc", [None, 1]),
        ("select sum(nullif(v, 2)) from orders group by g order by sum(nullif(v, 2)) desc", [None, 1]),
        ("select v from orders union all select 7 order by v desc", [None, 7, 2, 1]),
        ("select v from (select v from orders order by v desc limit 1)", [None]),
        ("with w as (select v from orders order by v desc limit 1) select v from w", [None]),
        ("select first_value(v) over (order by v desc) from orders limit 1", [None]),
        ("select v from orders order by row_number() over (order by v desc)", [None, 2, 1]),
        ("select v from orders order by row_number() over (order by v desc nulls last)", [2, 1, None]),
        ("select last_value(v) over (order by v rows between unbounded preceding and unbounded following) "
         "from orders limit 1", [None]),
        ("select array_agg(v order by v desc)[1] from orders", [None]),
    ],
)  # fmt: skip
def test_nulls_in_order(cache: SteppedCache, sql: str, values: list[object]) -> None:
    options = QueryOptions(tail=NoTail(), now_ms=lambda: NOW_MS)
    of_files, of_cache = run(sql, cache.source, options), cache.ask(sql)
    assert [row[0] for row in of_files.rows] == values
    assert of_cache is not None and [row[0] for row in of_cache.rows] == values


def test_a_result_is_named_as_it_was_asked(cache: SteppedCache) -> None:
    found = cache.ask("select row_number() over (order by v desc) from orders")
    assert found is not None and list(found.column_names) == ["row_number() OVER (ORDER BY v DESC)"]
