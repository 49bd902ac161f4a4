"""Corrections of dedup tables: a corrected row is seen where the row that it corrects was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hybrid.lake.commit_context import CommitContext
from hybrid.query.engine import QueryOptions, run
from hybrid.query.tail import NoTail
from hybrid.replace.ending import end_replacement
from hybrid.replace.job import run_job
from hybrid.replace.job_options import JobOptions
from hybrid.replace.lineage import list_replacements
from hybrid.replace.opening import open_replacement
from hybrid.replace.report import JobReport
from hybrid.replace.revert import revert
from hybrid.table.boundary import Boundary
from tests.move.clocked import DAY
from tests.move.test_dedup import dedup_spec
from tests.move.test_merging import row
from tests.query.halves import KEY, Halves
from tests.replace.tables import Table

pytestmark = pytest.mark.spark

WHERE = "select order_id, customer, amount from orders order by 1, 2 limit 100"


class Deduped(Table):
    """Three buckets of a dedup table. Key 1 came first in `b1` and again in `b2` and REALTIME, key 2 first in `b2`."""

    halves: Halves

    def ask(self, sql: str = WHERE) -> list[tuple[Any, ...]]:
        return [tuple(found) for found in run(sql, self.halves, QueryOptions(tail=NoTail(), now_ms=lambda: 0)).rows]

    def correct(self, segment: str | None, *rows: dict[str, object], **options: Any) -> JobReport:
        self.write_rows(rows)
        return run_job(self.context, self.job(segment), JobOptions(**options))


@pytest.fixture
def table(workbench: CommitContext, tmp_path: Path) -> Deduped:
    halves = Halves.create(tmp_path, dedup_spec())
    rows = [row(1, 5, 0, "b1"), row(3, 6, 1, "b1"), row(2, DAY, 2, "b2"), row(1, DAY + 1, 3, "b2", 2.0)]
    rows += [row(2, 2 * DAY, 4, "b3", 2.0), row(4, 2 * DAY + 5, 5, "b3")]
    halves.commit_realtime([row(1, 9 * DAY, 6, "orders__0__0__x", 3.0)], offsets={KEY: 7}, timestamp_max=0)
    halves.commit_offline(rows, Boundary(3 * DAY, {KEY: 6}))
    made = Deduped(workbench, halves.spec, halves.layout, tmp_path)
    object.__setattr__(made, "halves", halves)
    return made


def fixed(key: int, time: int, amount: float) -> dict[str, object]:
    return {"order_id": key, "customer": "fixed", "amount": amount, "ts": time}


def test_a_correction_of_the_first_row_is_seen_and_can_be_reverted(table: Deduped) -> None:
    before = table.ask()
    assert before == [(1, "b1", 1.0), (2, "b2", 1.0), (3, "b1", 1.0), (4, "b3", 1.0)]
    job = [fixed(1, 5, 7.0), fixed(3, 6, 8.0), fixed(1, 6, 9.0), fixed(2, 6, 9.0)]
    report = table.correct("b1", *job)
    assert report.warnings == (
        "1 key of the input will not show what the input says: another row of the key arrived first, and that one is "
        "seen (dedupConfig).",
    )
    seen = [(1, "fixed", 7.0), (2, "b2", 1.0), (3, "fixed", 8.0), (4, "b3", 1.0)]
    assert table.ask() == seen
    assert not table.correct("b1", *job).committed, "the same job twice changes nothing"
    assert table.correct("b1", *job[:2], fixed(1, 6, 10.0)).committed and table.ask() == seen
    for entry in list_replacements(table.layout):
        revert(table.context, entry.id)
    assert table.ask() == before


def test_a_correction_of_a_later_row_stays_hidden(table: Deduped) -> None:
    report = table.correct("b3", fixed(2, 2 * DAY, 7.0), fixed(4, 2 * DAY + 5, 7.0))
    assert len(report.warnings) == 1 and report.warnings[0].startswith("1 key of the input")
    assert table.ask()[1::2] == [(2, "b2", 1.0), (4, "fixed", 7.0)]


def test_a_first_row_that_is_removed_takes_the_later_ones_with_it(table: Deduped) -> None:
    before = table.ask()
    report = table.correct("b1", fixed(3, 6, 1.0))
    assert [found[0] for found in table.ask()] == [2, 3, 4]
    table.correct("more", fixed(1, 7, 9.0), append=True)
    assert [found[0] for found in table.ask()] == [2, 3, 4], "what comes later is not seen either"
    assert table.correct("b1", fixed(3, 6, 1.0), fixed(1, 5, 4.0)).warnings == ()
    assert (1, "fixed", 4.0) in table.ask(), "its place is known"
    revert(table.context, list_replacements(table.layout)[0].id)
    revert(table.context, str(report.act))
    assert table.ask() == before


def test_pinots_protocol_gives_places_too(table: Deduped) -> None:
    entry = open_replacement(
        table.spec, table.layout, (["b1", "b2"], ["n1", "n2"]), created_at="2021-11-21T10:38:00.000+00:00"
    )
    table.correct("n2", fixed(1, DAY + 1, 5.0), fixed(2, DAY, 5.0), fixed(2, DAY, 6.0))
    table.correct("n1", fixed(1, 5, 7.0))
    report = end_replacement(table.context, entry)
    assert report.warnings == ()
    assert table.ask() == [(1, "fixed", 7.0), (2, "fixed", 5.0), (4, "b3", 1.0)], "by bucket, then as they came"


def test_rows_that_only_come_are_seen_where_their_key_is_new(table: Deduped) -> None:
    report = table.correct("more", fixed(4, 7, 9.0), fixed(5, 8, 9.0), fixed(5, 9, 10.0), append=True)
    assert len(report.warnings) == 1
    assert table.ask()[3:] == [(4, "b3", 1.0), (5, "fixed", 9.0)]
    table.halves.commit_realtime([row(5, 9 * DAY, 7, "orders__0__0__x", 1.0, timestamp_ms=1)], offsets={KEY: 8})
    assert table.ask()[4] == (5, "fixed", 9.0), "the stream's row came after the swap"


def test_warnings_go_by_the_boundary_in_effect(table: Deduped) -> None:
    """What is set by hand hides the rows of key 2, so that the new one is seen."""
    table.halves.commit_offline([], Boundary(3 * DAY, {KEY: 6}, override_ms=DAY))
    report = table.correct("more", fixed(2, 7, 9.0), append=True)
    assert report.warnings == () and (2, "fixed", 9.0) in table.ask()
