"""The error of a column that does not exist: its place, the nearest name or the columns, and quotes for texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hybrid.errors import QueryError
from hybrid.query.result import QueryResult
from tests.query.halves import KEY, Halves, Row

COLUMNS = "Table 'orders' has the columns amount, customer, order_id, ts."


@pytest.fixture
def halves(make: Callable[..., Halves]) -> Halves:
    built = make()
    values = {"order_id": 1, "customer": "ada", "amount": 1.5, "ts": 10}
    built.commit_realtime([Row(values, 10, 0)], offsets={KEY: 1})
    return built


@pytest.mark.parametrize(
    ("sql", "message", "hint"),
    [
        ("select nope from orders", "'nope' does not exist at line 1, column 8.", COLUMNS),
        ("select 'nope', 1 -- nope\n, nope from orders", "'nope' does not exist at line 2, column 3.", COLUMNS),
        ("select custmer from orders", "column 8. Did you mean 'customer'?", None),
        ("select o.nope from orders o", "does not exist in 'o' at line 1, column 10.", COLUMNS),
        ("SET timeoutMs = 9000; select nope from orders_REALTIME", "at line 1, column 30.", COLUMNS),
        ("with c as (select ts from orders) select nope from c", "at line 1, column 42.", COLUMNS),
        (
            "select ts from orders where customer = ADA",
            "column 40.",
            "write 'ADA' in single quotes.",
        ),
        ("select ts from orders where customer in (ADA)", "column 42.", "write 'ADA' in single quotes."),
        ("select ts from orders where ADA <> customer", "column 29.", "write 'ADA' in single quotes."),
        (
            'select ts from orders where customer = "ADA"',
            "column 40.",
            "Double quotes mean a column.",
        ),
        ("select ts from orders where amount = ADA", "column 38.", COLUMNS),
        ("select ts from orders where customer = orders.ADA", "in 'orders' at line 1, column 47.", COLUMNS),
        ("select 1 from (select 1 a) where nope = 1", "at line 1, column 34.", None),
    ],
)
def test_an_unknown_column(ask: Any, halves: Halves, sql: str, message: str, hint: str | None) -> None:
    with pytest.raises(QueryError) as raised:
        ask(halves, sql)
    error = raised.value
    assert error.pinot_code == 710 and error.column is not None
    assert str(error).startswith("Column '") and message in str(error)
    assert error.hint is None if hint is None else error.hint is not None and hint in error.hint


def test_many_columns_are_cut(ask: Any, make: Callable[..., Halves]) -> None:
    from hybrid.schema.schema import FieldKind, FieldSpec
    from hybrid.schema.types import DataType

    extra = [FieldSpec(f"c{number:02}", DataType.LONG, FieldKind.METRIC) for number in range(40)]
    built = make(extra=extra)
    with pytest.raises(QueryError) as raised:
        ask(built, "select zzzzzz from orders")
    assert raised.value.hint is not None and raised.value.hint.endswith("c26, c27, c28 and 14 more.")


def test_other_errors_are_as_they_were(ask: Any, halves: Halves) -> None:
    with pytest.raises(QueryError) as raised:
        ask(halves, "select x.ts from orders o")
    assert raised.value.column is None and "line" not in str(raised.value)
    result: QueryResult = ask(halves, "select ts from orders")
    assert result.rows == [(10,)]
