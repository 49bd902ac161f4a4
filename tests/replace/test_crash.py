"""A job that is killed at its commit is done or not done, and running it again does the rest (R2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.errors import ConflictError
from hybrid.replace.job import run_job
from hybrid.replace.lineage import list_replacements
from hybrid.replace.revert import revert
from tests.replace.tables import Table, copied
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


@pytest.fixture(scope="module")
def replaced_template(orders_template: Table, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """The table after a replacement."""
    table = copied(orders_template, tmp_path_factory.mktemp("replaced"))
    table.write_rows(ROWS)
    run_job(table.context, table.job())
    return table


@pytest.mark.parametrize("position", ["before", "inside", "after"])
def test_a_killed_revert(replaced_template: Table, orders_template: Table, tmp_path: Path, position: str) -> None:
    before = orders_template.rows(hidden=True)
    orders = copied(replaced_template, tmp_path)
    (replaced,) = list_replacements(orders.layout)
    assert orders.rows(hidden=True) != before
    _die(orders, "revert", position)
    done = len(list_replacements(orders.layout)) == 2
    assert (orders.rows(hidden=True) == before) == done
    if done:
        with pytest.raises(ConflictError, match="reverted already"):
            revert(orders.context, replaced.id)
    else:
        revert(orders.context, replaced.id)
    assert orders.rows(hidden=True) == before
