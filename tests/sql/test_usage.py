"""What a statement does with columns."""

from __future__ import annotations

import pytest

from hybrid.sql.statement import parse_statement
from hybrid.sql.usage import needed_columns, only_shown


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("select count(*) from t", set()),
        ("select Max(b), a from t x where c > 1 group by a order by D", {"a", "b", "c", "d"}),
        ("select count(*) filter (where b) over (partition by c order by d) from t", {"b", "c", "d"}),
        ("select x.k from t x join u using (k)", {"k"}),
        ("with w as (select a as b from t) select b from w where b in (select c from u)", {"a", "b", "c"}),
        ("select list_transform(a, v -> v + b) from t", {"a", "b"}),
    ],
)
def test_all_columns_that_a_statement_needs_are_among_the_named(sql: str, columns: set[str]) -> None:
    found = needed_columns(parse_statement(sql).tree)
    assert found is not None
    assert columns <= found
    assert "z" not in found


@pytest.mark.parametrize(
    "sql",
    [
        "select * from t",
        "select x.* from t x",
        "select * exclude (a) from t",
        "select count(t.*) from t",
        "select columns('a.*') from t",
        "select t from t",
        "select row(x) from t as x",
        "select a from t natural join u",
        "select p from t as x(p, q)",
        "select n from t pivot (sum(b) for a in ('x'))",
        "select n from t unpivot (b for a in (c, d))",
        "with w as (select * from t) select a from w",
        "select a from t where exists (select * from u)",
    ],
)
def test_of_what_names_no_columns_any_may_be_needed(sql: str) -> None:
    assert needed_columns(parse_statement(sql).tree) is None


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("select a, count(*) from t group by a order by a", {"a"}),
        ("select count(a), count(distinct b) from t", {"a", "b"}),
        ("select sum(distinct a), list(b), upper(c) from t where d = 'x'", set()),
        ("select count(a) from t where a = 'x'", set()),
    ],
)
def test_columns_that_are_only_shown_grouped_counted_and_sorted_by(sql: str, shown: set[str]) -> None:
    assert only_shown(parse_statement(sql).tree) == shown
