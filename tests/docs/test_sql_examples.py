"""Statements of the docs on filling gaps: each runs, on orders as the recipe of that name has them."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest

from hybrid.query.engine import QueryOptions, run
from hybrid.query.result import QueryResult
from hybrid.query.tail import NoTail
from hybrid.schema.schema import FieldKind, FieldSpec
from hybrid.schema.types import DataType
from tests.docs.pages import ROOT, reference
from tests.query.halves import KEY, Halves, Row, orders_spec

HOUR = 3_600_000
# The first order of data/orders/events.jsonl; the others come two hours later.
FIRST_MS = 1632463351000


def statements(page: Path, heading: str) -> list[str]:
    """The SQL blocks below a heading of a page."""
    section = page.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^```sql\n(.*?)^```$", section, re.M | re.S)


RECIPE = statements(ROOT / "docs" / "how-to.md", "Count by the hour without gaps")
REFERENCE = statements(reference("query"), "Gap filling")


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Halves:
    extra = [FieldSpec(name, DataType.STRING, FieldKind.DIMENSION) for name in ("customer_id", "order_status")]
    halves = Halves.create(Path(tmp_path_factory.mktemp("orders")), orders_spec(extra=extra))
    rows = []
    for offset, moment in enumerate((FIRST_MS, FIRST_MS + 2 * HOUR, FIRST_MS + 2 * HOUR + 1)):
        values = {
            "order_id": offset, "customer": "c", "amount": 1.5, "ts": moment, "customer_id": "7", "order_status": "OPEN"
        }  # fmt: skip
        rows.append(Row(values, moment, offset))
    halves.commit_realtime(rows, offsets={KEY: len(rows)})
    return halves


def answer(halves: Halves, sql: str) -> QueryResult:
    return run(sql, halves, QueryOptions(tail=NoTail(), now_ms=lambda: FIRST_MS + 9 * HOUR))


@pytest.mark.parametrize("sql", [*RECIPE, *REFERENCE])
def test_the_statement_runs(orders: Halves, sql: str) -> None:
    assert answer(orders, sql).rows


def test_the_recipe_fills_the_hours_without_orders(orders: Halves) -> None:
    found = answer(orders, RECIPE[0])
    counts = {time.hour: n for time, n in found.rows if isinstance(time, datetime)}
    assert counts == {5: 0, 6: 1, 7: 0, 8: 2, 9: 0, 10: 0, 11: 0}
    split = RECIPE[0].replace("as n from orders group by 1", "as n, customer_id from orders group by 1, 3")
    split = split.replace("as bucket, n\n", "as bucket, n, customer_id\n")
    split = split.replace("'FILL_DEFAULT_VALUE')", "'FILL_DEFAULT_VALUE'), TIMESERIESON(customer_id)")
    assert [row[1:] for row in answer(orders, split).rows] == [(n, "7") for n in counts.values()]
