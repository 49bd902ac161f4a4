"""Reverts: exactly the old rows, or a refusal that says why."""

from __future__ import annotations

import pytest

from hybrid.config.table_config import Half
from hybrid.errors import ConflictError, NotFoundError
from hybrid.lake.log import open_half
from hybrid.replace.job import run_job
from hybrid.replace.job_options import JobOptions
from hybrid.replace.lineage import list_replacements, show_replacement
from hybrid.replace.report import JobReport
from hybrid.replace.revert import revert
from tests.replace.tables import SEGMENT, Table

pytestmark = pytest.mark.spark

ROW = {"order_id": 1, "customer_id": 1, "order_status": "X", "amount": 1.0, "ts": 1632463351000}


def _replace(table: Table, amount: float, segment: str = SEGMENT, **options: bool) -> JobReport:
    table.write_rows([{**ROW, "amount": amount}])
    return run_job(table.context, table.job(segment), JobOptions(**options))  # type: ignore[arg-type]


def _revert(table: Table, report: JobReport, **options: bool) -> JobReport:
    assert report.act is not None
    return revert(table.context, report.act, **options)  # type: ignore[arg-type]


def test_there_and_back_again(orders: Table) -> None:
    before = orders.rows(hidden=True)
    done = _replace(orders, 1.0)
    after = orders.rows(hidden=True)
    files = orders.fingerprint()
    assert _revert(orders, done, dry_run=True).sentence.startswith(f"Would revert '{done.act}'")
    assert orders.fingerprint() == files
    undone = _revert(orders, done)
    assert orders.rows(hidden=True) == before
    assert (undone.rows_before, undone.rows_after) == (1, 7)
    states = [(entry.kind, entry.state) for entry in list_replacements(orders.layout)]
    assert states == [("revert", "ACTIVE"), ("replace", "REVERTED")]
    with pytest.raises(ConflictError, match=f"has been reverted already, by '{undone.act}'"):
        _revert(orders, done)
    # A revert can itself be reverted.
    _revert(orders, undone)
    assert orders.rows(hidden=True) == after
    assert show_replacement(orders.layout, str(done.act)).state == "ACTIVE"
    assert show_replacement(orders.layout, str(undone.act)).state == "REVERTED"


def test_newer_work_comes_first(orders: Table) -> None:
    before = orders.rows(hidden=True)
    first, second = _replace(orders, 1.0), _replace(orders, 2.0)
    beside = _replace(orders, 3.0, "beside", append=True)
    with pytest.raises(ConflictError, match=f"has been changed again since, by '{second.act}'") as caught:
        _revert(orders, first)
    assert caught.value.hint == f"Revert the newer one first: hybrid replacement revert orders {second.act}"
    gone = _revert(orders, beside)  # of segments that others have not touched: in any order
    assert "segment 'beside' is removed" in gone.sentence and orders.segments() == {SEGMENT}
    undone = _revert(orders, second)
    _revert(orders, undone)
    with pytest.raises(ConflictError, match=f"has been changed again since, by '{second.act}'"):
        _revert(orders, first)
    _revert(orders, second)
    _revert(orders, first)
    assert orders.rows(hidden=True) == before
    with pytest.raises(NotFoundError, match="Replacement 'replace-x' does not exist"):
        revert(orders.context, "replace-x")


def test_old_rows_that_are_gone(orders: Table) -> None:
    old = [file.path for file in open_half(orders.path(Half.OFFLINE)).files]
    done = _replace(orders, 1.0)
    for path in old:
        (orders.path(Half.OFFLINE) / path).unlink()
    with pytest.raises(ConflictError, match="are no longer retained: data file"):
        _revert(orders, done)
