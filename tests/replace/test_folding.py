"""Jobs on a table that folds: what is swapped in arrives then, and delete markers of what it replaces stay."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.table_config import Partial, Strategy, UpsertConfig
from hybrid.lake.commit_context import CommitContext
from hybrid.query.engine import QueryOptions, run
from hybrid.query.query_table import QueryTable
from hybrid.replace.job import run_job
from hybrid.replace.lineage import list_replacements
from hybrid.replace.revert import revert
from hybrid.schema.schema import FieldKind, FieldSpec
from hybrid.schema.types import DataType
from hybrid.table.boundary import Boundary
from tests.query.halves import ListTail, orders_spec
from tests.replace.tables import KAFKA, Table

pytestmark = pytest.mark.spark


@dataclass
class Source:
    """A table as queries find it."""

    table: Table

    def names(self) -> list[str]:
        return ["orders"]

    def open(self, name: str) -> QueryTable:
        return QueryTable(self.table.spec, self.table.layout)


def shown(table: Table) -> list[tuple[Any, ...]]:
    found = run("select order_id, n, amount from orders order by 1", Source(table), QueryOptions(tail=ListTail()))
    return [tuple(one) for one in found.rows]


def event(key: int, ts: int, n: int, amount: float, gone: bool = False) -> dict[str, Any]:
    return {"order_id": key, "customer": "c", "amount": amount, "ts": ts, "n": n, "gone": gone}


def test_a_job_in_the_place_of_old_rows(workbench: CommitContext, tmp_path: Path) -> None:
    spec = orders_spec(upsert=True, deletes=True, extra=[FieldSpec("n", DataType.LONG, FieldKind.METRIC)])
    upsert = UpsertConfig("n", "gone", partial=Partial({"amount": Strategy.INCREMENT}))
    table = Table.create(workbench, tmp_path, replace(spec, upsert=upsert, null_handling=True))
    old = [event(1, 10, 10, 1.0), event(2, 11, 10, 1.0), event(3, 12, 10, 1.0), event(3, 13, 20, 0.0, gone=True)]
    new = [event(1, 1010, 30, 2.0), event(3, 1011, 15, 8.0)]
    table.ingest([*old, *new, event(2, 2010, 20, 4.0)])
    table.add_offline("one", [(row, offset) for offset, row in enumerate(old)])
    table.add_offline("two", [(row, 4 + offset) for offset, row in enumerate(new)], Boundary(2000, {KAFKA: 7}))
    before = shown(table)
    assert before == [(1, 30, 3.0), (2, 20, 5.0)]

    # Two rows come in the place of those of their version, below what keys 1 and 3 have reached. Key 2 has reached 20,
    # and key 3 was deleted at 20.
    rows = [event(1, 10, 10, 9.0), event(2, 11, 20, 9.0), event(2, 11, 15, 9.0), event(3, 12, 10, 9.0),
            event(3, 12, 15, 9.0), event(4, 13, 5, 1.0), event(4, 13, 6, 1.0)]  # fmt: skip
    table.write_rows(rows)
    report = run_job(table.context, table.job("one"))
    assert (report.rows_before, report.rows_after, report.added, report.removed) == (3, 7, 7, 3), report.sentence
    assert [warning.partition(":")[0] for warning in report.warnings] == ["2 rows of the input will be ignored"]
    assert shown(table) == [(1, 30, 11.0), (2, 20, 13.0), (4, 6, 2.0)], "key 3 stays deleted"
    again = run_job(table.context, table.job("one"))
    assert not again.committed and "already holds exactly these 7 rows" in again.sentence
    (entry,) = list_replacements(table.layout)
    revert(table.context, entry.id)
    assert shown(table) == before


def test_rows_that_a_job_brings_again_keep_their_arrival(workbench: CommitContext, tmp_path: Path) -> None:
    """One row is put right; all others of its segment count as before, in their order, though their keys went on."""
    spec = orders_spec(upsert=True, deletes=True, extra=[FieldSpec("n", DataType.LONG, FieldKind.METRIC)])
    upsert = UpsertConfig("n", "gone", partial=Partial({"amount": Strategy.INCREMENT}))
    table = Table.create(workbench, tmp_path, replace(spec, upsert=upsert, null_handling=True))
    last = {**event(4, 13, 10, 2.0), "customer": "last"}
    old = [event(1, 10, 10, 1.0), event(2, 11, 10, 1.0), event(3, 12, 10, 1.0), event(3, 13, 20, 0.0, gone=True),
           event(4, 13, 10, 1.0), last]  # fmt: skip
    new = [event(1, 1010, 30, 2.0), event(3, 1011, 20, 8.0)]
    table.ingest([*old, *new, event(2, 2010, 20, 4.0)])
    table.add_offline("one", [(row, offset) for offset, row in enumerate(old)])
    table.add_offline("two", [(row, 6 + offset) for offset, row in enumerate(new)], Boundary(2000, {KAFKA: 9}))
    assert shown(table) == [(1, 30, 3.0), (2, 20, 5.0), (3, 20, 8.0), (4, 10, 3.0)]

    table.write_rows([*reversed(old[2:]), event(2, 11, 10, 7.0), old[0]])
    report = run_job(table.context, table.job("one"))
    assert (report.added, report.removed, report.warnings) == (1, 1, ()), report.sentence
    assert shown(table) == [(1, 30, 3.0), (2, 20, 11.0), (3, 20, 8.0), (4, 10, 3.0)]
    found = run("select customer from orders where order_id = 4", Source(table), QueryOptions(tail=ListTail()))
    assert [tuple(one) for one in found.rows] == [("last",)]
    assert not run_job(table.context, table.job("one")).committed, "the marker stands once"
