"""Multi-value columns: conditions and groups, as they reach DuckDB."""

from __future__ import annotations

import pytest

from hybrid.sql.functions import rewrite_functions
from hybrid.sql.statement import parse_statement
from hybrid.sql.times import TimeContext
from tests.shared_duckdb import plain_duckdb


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("tags = 'x'", [1, 2]), ("'x' = tags", [1, 2]), ("tags <> 'x'", [3]), ("not tags = 'x'", [3]),
        ("tags in ('y', 'z')", [1, 3]), ("tags not in ('y', 'z')", [2]), ("tags > 'y'", [3]), ("'y' < tags", [3]),
        ("tags between 'y' and 'yy'", [1]), ("tags like 'Z%'", [3]), ("regexp_like(tags, '^[yz]$')", [1, 3]),
        ("other = tags", []), ("id = 1", [1]),
    ],
)  # fmt: skip
def test_a_condition_holds_for_any_value(where: str, ids: list[int]) -> None:
    assert ask(f"select id from t where {where} order by id") == [(found,) for found in ids]


def test_group_by_counts_each_value() -> None:
    assert ask("select tags, count(*), sum(id) from t group by tags order by tags") == [
        ("x", 2, 3), ("y", 1, 1), ("z", 1, 3),
    ]  # fmt: skip
    assert ask("select tags as tag from t group by tag order by tag") == [("x",), ("y",), ("z",)]
    assert ask("select distinct tags from t order by tags") == [("x",), ("y",), ("z",)]
    assert ask("select id, tags from t where id = 2") == [(2, ["x"])]


def ask(sql: str) -> list[tuple[object, ...]]:
    tree = parse_statement(sql).tree
    rewrite_functions(tree, TimeContext(0, {}, frozenset({"tags", "other"})))
    rows = "(values (1, ['x', 'y'], ['a']), (2, ['x'], ['a']), (3, ['z'], ['a'])) v(id, tags, other)"
    with plain_duckdb().cursor() as connection:
        connection.execute(f"create temp table t as select * from {rows}")
        return connection.execute(tree.sql("duckdb")).fetchall()
