"""Replacements in several requests: what jobs push between start and end, and the one commit at the end."""

from dataclasses import replace
from typing import Any

import pytest

from hybrid.config.expectations import Expectation, ExpectationKind
from hybrid.config.table_config import Half
from hybrid.errors import ConflictError, DataError
from hybrid.lake import pushes
from hybrid.lake.log import open_half
from hybrid.lake.pushes import OpenReplacement
from hybrid.replace import swap
from hybrid.replace.ending import end_replacement
from hybrid.replace.job import run_job
from hybrid.replace.job_options import JobOptions
from hybrid.replace.lineage import list_replacements
from hybrid.replace.opening import open_replacement
from hybrid.replace.report import JobReport
from tests.replace.tables import BOUNDARY_MS, SEGMENT, Table

pytestmark = pytest.mark.spark
TIME = 1632463351000
COUNT = '{"kind": "row_count_change", "percent": 5}'


def start(table: Table, old: list[str], new: list[str]) -> OpenReplacement:
    return open_replacement(table.spec, table.layout, (old, new), created_at="2021-11-21T10:38:00.000+00:00")


def push(table: Table, segment: str, *rows: dict[str, object], **options: Any) -> JobReport:
    table.write_rows(rows)
    return run_job(table.context, table.job(segment), JobOptions(**options))


def end(table: Table, entry: OpenReplacement) -> JobReport:
    return end_replacement(table.context, entry)


def test_pushes_to_an_upsert_table(concat: Table) -> None:
    entry = start(concat, [SEGMENT], ["a", "b"])
    equal = {"order_id": 1, "ts": TIME}
    push(concat, "a", {**equal, "amount": 1.0}, {"order_id": 4, "ts": TIME})
    report = push(concat, "b", {**equal, "amount": 2.0}, expect=[COUNT, "warn: amount > 100"])
    assert report.staged_for == entry.id and not report.committed and report.rows_after == 1
    assert [one for one in report.warnings if "is not looked at" in one] and concat.segments() == {SEGMENT}

    narrow = replace(concat.spec.schema, fields=concat.spec.schema.fields[:-1])
    with pytest.raises(ConflictError, match="other columns than when 2 segments 'a' to 'b' was pushed"):
        end(replace(concat, spec=replace(concat.spec, schema=narrow)), entry)

    report = end(concat, entry)
    assert report.act == entry.id and report.version == open_half(concat.path(Half.OFFLINE)).version
    assert report.segments_to == ("a", "b", SEGMENT), "the old one keeps markers of the keys that went"
    visible = concat.visible()
    assert visible[1]["amount"] == 2.0, "of equal versions that of the later push wins"
    assert {2, 3} & set(visible) == set() and 4 in visible
    (listed,) = list_replacements(concat.layout)
    assert listed.id == entry.id and [one["state"] for one in listed.lineage.expectations] == ["WARNED"]
    assert not concat.staged() and not pushes.pushed(concat.layout, entry.id)

    # Its process may die between the commit and the mark.
    (concat.layout.plan(entry.id) / "closed.json").unlink()
    assert end(concat, entry).sentence.startswith("Nothing to do") and len(list_replacements(concat.layout)) == 1


def test_what_is_refused_at_the_end(orders: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = start(orders, [SEGMENT], ["late"])
    push(orders, "late", {"order_id": 1, "ts": TIME})
    few = Expectation(ExpectationKind.ROW_COUNT_CHANGE, "as many", percent=10)
    with pytest.raises(DataError, match="as many"):
        end(replace(orders, spec=replace(orders.spec, expectations=(few,))), entry)
    push(orders, "late", {"order_id": 8, "ts": BOUNDARY_MS + 1}, {"order_id": 9, "ts": BOUNDARY_MS + 10_000_000_000})
    with pytest.raises(ConflictError, match="past the boundary"):
        end(orders, entry)
    assert orders.segments() == {SEGMENT}

    push(orders, "late", {"order_id": 1, "ts": TIME})
    (last, _) = pushes.pushed(orders.layout, entry.id)["late"]
    rows, away = pushes.segment_folder(orders.layout, entry.id, last, "late"), orders.folder / "away"
    rows.rename(away)
    with pytest.raises(DataError, match="holds 0 of 1 row that were pushed"):
        end(orders, entry)
    assert orders.segments() == {SEGMENT} and pushes.in_progress(orders.layout) == [entry]
    away.rename(rows)
    commit = swap.commit_swap

    def after_another(*args: Any) -> int:
        orders.add_offline(SEGMENT, [({"order_id": 91, "ts": TIME}, 90)])
        return commit(*args)

    monkeypatch.setattr("hybrid.replace.ending.commit_swap", after_another)
    with pytest.raises(ConflictError, match="has been rewritten since"):
        end(orders, entry)
    assert orders.segments() == {SEGMENT} and pushes.in_progress(orders.layout) == [entry]
