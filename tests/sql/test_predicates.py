import pytest

from hybrid.sql.predicates import Comparison, comparisons_on
from hybrid.sql.statement import parse_statement
from hybrid.sql.tables import resolve_tables


def found(sql: str) -> list[Comparison]:
    ref = resolve_tables(parse_statement(sql).tree, ["t", "u"])[0]
    return comparisons_on(ref, ["ts", "name"])


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select 1 from t where TS > 5 and (5 >= ts) and name = 'x'",
         [("ts", ">", (5,)), ("ts", "<=", (5,)), ("name", "=", ("x",))]),
        ("select 1 from t where ts between -1 and 2.5", [("ts", ">=", (-1,)), ("ts", "<=", (2.5,))]),
        ("select 1 from t where ts in (1, 2)", [("ts", "in", (1, 2))]),
        ("select 1 from t where ts in (1, x)", []),
        ("select 1 from t where ts > 5 or name = 'x'", []),
        ("select 1 from t where not (ts > 5)", []),
        ("select 1 from t where ts > other", []),
        ("select 1 from t where ts + 1 > 5", []),
        ("select 1 from t where t.ts > 5 and u.ts > 6", [("ts", ">", (5,))]),
        ("select 1 from t x join u on true where x.ts > 5 and ts > 7", [("ts", ">", (5,))]),
        ("select 1 from t asof join u on t.ts >= u.ts where t.ts > 5", []),
        ("select 1 from t tablesample 10% where ts > 5", []),
        ("select sum(1) filter (where ts > 5) from t", []),
        ("select 1 from t having ts > 5", []),
        ("select 1 from (select * from t) x where ts > 5", []),
        ("select 1 from t where exists (select 1 from u where t.ts > 5)", []),
        ("select 1 from t where ts > 9007199254740993", [("ts", ">", (9007199254740993,))]),
    ],
)  # fmt: skip
def test_only_certain_comparisons_are_found(sql: str, expected: list[tuple[object, ...]]) -> None:
    assert [(item.column, item.op, item.values) for item in found(sql)] == expected


@pytest.mark.parametrize(
    ("op", "value", "low", "high", "possible"),
    [
        ("<", 5, 5, 9, False), ("<", 5, 4, 9, True), ("<=", 5, 5, 9, True), (">", 9, 5, 9, False),
        (">=", 9, 5, 9, True),
        ("=", 4, 5, 9, False), ("=", 5, 5, 9, True), ("=", 10, 5, 9, False), ("=", 7, None, None, True),
        ("=", "7", 5, 9, True), ("=", "b", "c", "d", False), ("=", 7, "5", "6", True),
    ],
)  # fmt: skip
def test_what_statistics_rule_out(op: str, value: int, low: object, high: object, possible: bool) -> None:
    assert Comparison("x", op, (value,)).possible(low, high) is possible
