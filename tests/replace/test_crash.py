"""A job that is killed at its commit is done or not done, and running it again does the rest (R2)."""

from __future__ import annotations

import pytest

from hybrid.errors import ConflictError
from hybrid.replace.job import run_job
from hybrid.replace.lineage import list_replacements
from hybrid.replace.revert import revert
from tests.replace.tables import Table
from tests.shared_jvm import die_at

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS = [{"order_id": 1, "customer_id": 1, "order_status": "X", "amount": 1.0, "ts": 1632463351000}]


def _die(table: Table, verb: str, position: str) -> None:
    die_at(f"{verb}.commit.{position}", table.bench, "tests.replace.crashing_worker", str(table.folder), verb)


@pytest.mark.parametrize("position", ["before", "inside", "after"])
def test_a_killed_replacement(orders: Table, position: str) -> None:
    orders.write_rows(ROWS)
    _die(orders, "replace", position)
    done = list_replacements(orders.layout)
    assert len(orders.rows()) == (1 if done else 7)
    assert bool(done) == (position == "after") or position == "inside"
    again = run_job(orders.context, orders.job())
    assert (again.version is None) == bool(done)
    assert len(orders.rows()) == 1 and len(list_replacements(orders.layout)) == 1


@pytest.mark.parametrize("position", ["before", "inside", "after"])
def test_a_killed_revert(orders: Table, position: str) -> None:
    before = orders.rows(hidden=True)
    orders.write_rows(ROWS)
    replaced = run_job(orders.context, orders.job())
    assert replaced.act is not None
    _die(orders, "revert", position)
    done = len(list_replacements(orders.layout)) == 2
    assert (orders.rows(hidden=True) == before) == done
    if done:
        with pytest.raises(ConflictError, match="reverted already"):
            revert(orders.context, replaced.act)
    else:
        revert(orders.context, replaced.act)
    assert orders.rows(hidden=True) == before
