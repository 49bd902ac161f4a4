"""Merges of segments on real halves: what stands in whose place, and that queries and reverts know no difference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.table_config import BoundaryMode, Half, MergeLevel, MergeType, UpsertConfig
from hybrid.errors import DataError, OvertakenError, SpecError
from hybrid.lake import plans
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.log import open_half
from hybrid.lake.table_context import TableContext
from hybrid.lake.transaction import LogTransaction
from hybrid.move.merging import rewrite
from hybrid.move.merging import run as merging_run
from hybrid.move.merging.merge_exclusions import HIDDEN
from hybrid.move.merging.report import MergeReport
from hybrid.move.merging.run import run_merges
from hybrid.query.engine import QueryOptions, run
from hybrid.query.tail import NoTail
from hybrid.replace.lineage import list_replacements
from hybrid.replace.merged import merges_since
from hybrid.replace.opening import open_replacement
from hybrid.replace.revert import revert
from hybrid.table.boundary import Boundary
from hybrid.table.plans import BucketState, Counts, Plan, PlannedBucket, Unit
from tests.move.clocked import DAY, Clocked
from tests.query.halves import KEY, Halves, Row, orders_spec

pytestmark = pytest.mark.spark

OFFLINE = Half.OFFLINE
STORED = "select $segmentName, order_id, amount, ts from orders_OFFLINE order by order_id, ts, amount limit 1000"
SHOWN = "select order_id, amount, ts from orders order by order_id, ts, amount limit 1000"


def row(order: int, time: int, offset: int, segment: str, amount: float = 1.0, **more: Any) -> Row:
    deleted = {"gone": more.get("op") == "delete"} if "op" in more else {}
    return Row(
        {"order_id": order, "customer": segment, "amount": amount, "ts": time, **deleted},
        time,
        offset,
        segment=segment,
        **more,
    )


class Merging(Clocked):
    """A table whose segments are merged."""

    def add(self, *rows: Row, kind: str = "move") -> None:
        self.halves.commit_offline(rows, Boundary(9 * DAY, {KEY: 1000}, mode=self.half().offline.boundary.mode), kind)

    def run(self, **options: Any) -> MergeReport:
        return run_merges(self.halves.context(self.bench), **options)

    def ask(self, sql: str = SHOWN) -> list[tuple[Any, ...]]:
        return [
            tuple(found) for found in run(sql, self.halves, QueryOptions(tail=NoTail(), now_ms=lambda: self.now)).rows
        ]

    def half(self) -> Any:
        return open_half(self.halves.layout.half(OFFLINE))

    def segments(self) -> list[str]:
        return sorted({file.segment for file in self.half().files})

    def revert(self, entry: str) -> Any:
        return revert(self.halves.context(self.bench), entry)


@pytest.fixture
def make(workbench: CommitContext, tmp_path: Path) -> Callable[..., Merging]:
    def made(
        *levels: MergeLevel, mode: BoundaryMode | None = None, compare: str = "ts", changes: Any = None, **options: Any
    ) -> Merging:
        spec = replace(orders_spec(**options), merge_levels=levels or (daily(),), **(changes or {}))
        if spec.upsert is not None:
            spec = replace(spec, upsert=UpsertConfig(compare, spec.upsert.delete_column))
        return Merging(Halves.create(tmp_path, spec, mode), workbench)

    return made


def daily(merge: MergeType = MergeType.CONCAT, **changes: Any) -> MergeLevel:
    return MergeLevel(bucket_ms=DAY, buffer_ms=DAY, merge_type=merge, name="1day", **changes)


def test_segments_of_a_bucket_become_one_and_no_query_sees_it(make: Callable[..., Merging]) -> None:
    table = make()
    table.add(row(1, 5, 0, "a"), row(2, DAY - 1, 1, "a"), row(3, DAY, 2, "b"))
    table.add(row(4, 7, 3, "late"), row(5, 1, 4, "late"), row(6, 9 * DAY, 5, "open"), row(7, 9 * DAY + 1, 6, "open2"))
    before, stored, version = table.ask(), table.ask(STORED), table.half().version
    dry = table.run(dry_run=True)
    assert dry.sentence == "Would merge 2 segments of 1 bucket with 4 rows of 'orders'."
    assert (dry.committed, table.half().version) == (False, version)
    report = table.run()
    assert report.sentence == "Merged 2 segments of 1 bucket with 4 rows of 'orders' into 1."
    (merged,) = report.merged
    assert (merged.segments, merged.into, merged.start) == (("late", "a"), ("orders_1_86399999_0",), 0)
    assert table.segments() == ["b", "open", "open2", "orders_1_86399999_0"]
    assert table.ask() == before
    assert [found[1:] for found in table.ask(STORED)] == [found[1:] for found in stored]
    assert table.half().offline.boundary == Boundary(9 * DAY, {KEY: 1000})
    (entry,) = list_replacements(table.halves.layout)
    assert (entry.kind, entry.id, entry.version) == ("merge", merged.act, merged.version)
    assert entry.result == "Merged 2 segments with 4 rows into 1 (1day, concat)."
    again = table.run()
    assert again.sentence == "Nothing to merge in 'orders': no closed bucket of '1day' holds segments to merge."
    assert not again.committed


def test_a_revert_brings_the_rows_and_names_back_and_the_next_run_merges_anew(make: Callable[..., Merging]) -> None:
    table = make()
    table.add(row(1, 5, 0, "a"), row(2, 6, 1, "b"))
    stored = table.ask(STORED)
    (first,) = table.run().merged
    table.revert(str(first.act))
    assert table.ask(STORED) == stored
    (second,) = table.run().merged
    assert second.into == ("orders_5_6_1",)  # the name of before may come back by a revert of the revert


def test_buckets_are_staged_together_and_committed_one_by_one(make: Callable[..., Merging]) -> None:
    table = make()
    rows = [
        row(day * 10 + place, day * DAY + place, day * 10 + place, f"{day}-{place}")
        for day in range(4)
        for place in range(3)
    ]
    table.add(*rows)
    before = table.ask()
    report = table.run()
    assert [one.start for one in report.merged] == [0, DAY, 2 * DAY, 3 * DAY]
    assert [one.version for one in report.merged] == [2, 3, 4, 5]
    assert sum("Merging" in said for said in table.said) == 1
    assert table.ask() == before
    assert len(table.segments()) == 4


def test_a_task_takes_so_many_rows_and_a_segment_holds_so_many(make: Callable[..., Merging]) -> None:
    table = make(daily(max_records_per_segment=5, max_records_per_task=8))
    table.add(*(row(number, number, number, f"s{number // 2:02d}") for number in range(30)))
    before = table.ask()
    report = table.run()
    assert table.ask() == before
    assert [(len(one.segments), len(one.into)) for one in report.merged] == [(4, 2)] * 3 + [(3, 2)]
    files: dict[str, int] = {}
    for file in table.half().files:
        files[file.segment] = files.get(file.segment, 0) + file.rows
    assert max(files.values()) == 5
    assert not table.run().committed


@pytest.mark.parametrize("merge", [MergeType.LATEST, MergeType.CONCAT])
def test_of_a_key_the_latest_row_stays_and_markers_are_rows(make: Callable[..., Merging], merge: MergeType) -> None:
    table = make(daily(merge), upsert=True, deletes=True, compare="amount")
    table.add(row(1, 5, 0, "a", 1.0, op="row"), row(2, 5, 1, "a", 9.0, op="row"), row(3, 5, 2, "a", 1.0, op="row"))
    table.add(row(1, 6, 3, "b", 2.0, op="row"), row(2, 6, 4, "b", 3.0, op="row"), row(3, 6, 5, "b", 5.0, op="delete"))
    table.add(row(3, DAY + 1, 6, "c", 4.0, op="row"))  # an older version of a deleted key, in another bucket
    before = table.ask()
    assert [found[0] for found in before] == [1, 2]
    report = table.run()
    assert table.ask() == before
    (merged,) = report.merged
    assert (merged.rows_read, merged.rows_written) == ((6, 3) if merge is MergeType.LATEST else (6, 6))
    if merge is MergeType.LATEST:
        assert report.sentence.endswith("into 1, 3 rows left out.")
    table.revert(str(merged.act))
    assert table.ask() == before


def test_dedup_keeps_one_of_equal_rows(make: Callable[..., Merging]) -> None:
    table = make(daily(MergeType.DEDUP))
    same = Row({"order_id": 1, "customer": "x", "amount": 1.0, "ts": 5}, 5, 0, segment="a")
    table.add(same, row(2, 6, 1, "a"))
    table.add(replace(same, offset=2, segment="b"))
    assert table.run().rows_written == 2
    assert [found[0] for found in table.ask()] == [1, 2]


def test_longer_levels_merge_what_shorter_ones_made(make: Callable[..., Merging]) -> None:
    hourly = replace(daily(), bucket_ms=DAY // 24, name="1hour")
    table = make(hourly, daily())
    hours = [(0, "a"), (1, "b"), (3_600_000, "c"), (3_600_001, "d")]
    table.add(*(row(number, time, number, name) for number, (time, name) in enumerate(hours)))
    before = table.ask()
    report = table.run()
    assert [(one.task, len(one.segments)) for one in report.merged] == [
        ("MergeRollupTask 1hour", 2),
        ("MergeRollupTask 1hour", 2),
        ("MergeRollupTask 1day", 2),
    ]
    assert table.segments() == ["orders_0_3600001_0"]
    assert table.ask() == before
    names = [entry.id for entry in merges_since(table.half(), "a")]
    assert names == [report.merged[2].act, report.merged[0].act]
    assert merges_since(table.half(), "orders_0_3600001_0") == merges_since(table.half(), "nobody") == []


def test_what_happens_to_its_segments_meanwhile_is_kept(make: Callable[..., Merging]) -> None:
    """A correction of one bucket comes while two are staged: the other is merged, and then what the correction left."""
    table = make()
    table.add(row(1, 5, 0, "a"), row(2, 6, 1, "b"), row(3, DAY, 2, "c"), row(4, DAY + 1, 3, "d"))
    table.meanwhile = lambda: table.add(row(5, 7, 4, "a"), kind="replace")
    report = table.run()
    assert [(one.start, one.segments, one.rows_read) for one in report.merged] == [
        (DAY, ("c", "d"), 2),
        (0, ("a", "b"), 3),
    ]
    assert [found[0] for found in table.ask()] == [1, 2, 3, 4, 5]


def test_other_buckets_acts_do_not_hinder(make: Callable[..., Merging]) -> None:
    table = make()
    table.add(row(1, 5, 0, "a"), row(2, 6, 1, "b"))
    table.meanwhile = lambda: table.add(row(3, 2 * DAY, 2, "new"))
    report = table.run()
    assert len(report.merged) == 1 and sum("Merging" in said for said in table.said) == 1
    assert [found[0] for found in table.ask()] == [1, 2, 3]


def test_acts_that_keep_coming_first_are_told(make: Callable[..., Merging], monkeypatch: pytest.MonkeyPatch) -> None:
    table = make()
    table.add(row(1, 5, 0, "a"), row(2, 6, 1, "b"))
    monkeypatch.setattr(rewrite.Rewrite, "_is_as_planned", lambda *_: False)
    with pytest.raises(OvertakenError, match="came first 5 times"):
        table.run()
    assert table.segments() == ["a", "b"]


def test_a_commit_that_is_overtaken_removes_its_own_files_alone(
    make: Callable[..., Merging], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make()
    table.add(row(1, 5, 0, "a"), row(2, 6, 1, "b"), row(3, DAY, 2, "c"), row(4, DAY + 1, 3, "d"))
    before, commit, calls = table.ask(), LogTransaction.commit, []

    def second_is_overtaken(*arguments: Any) -> int:
        calls.append(arguments)
        if len(calls) == 2:
            raise OvertakenError("first")
        return commit(*arguments)

    monkeypatch.setattr(LogTransaction, "commit", second_is_overtaken)
    report = table.run()
    assert [one.start for one in report.merged] == [0, DAY] and len(calls) == 3
    assert table.ask() == before
    stored = {path for path in table.half().path.glob("*/*.parquet")} - {Path(file.path) for file in table.half().files}
    assert len(stored) == 4  # those that were merged away


def test_segments_that_lack_rows_are_left_and_the_others_merged(
    make: Callable[..., Merging], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make()
    table.add(row(1, 5, 0, "a"), row(2, 6, 1, "b"), row(3, DAY, 2, "c"), row(4, DAY + 1, 3, "d"))
    monkeypatch.setattr(merging_run, "merge", lambda rows, *_: rows.where("order_id > 1"))
    with pytest.raises(DataError, match="Of 2 rows in 2 segments of 'orders'"):
        table.run()
    assert table.segments() == ["a", "b", "orders_86400000_86400001_0"]


def test_segments_of_an_open_replacement_stay(make: Callable[..., Merging]) -> None:
    table = make()
    table.add(row(1, 5, 0, "a"), row(2, 6, 1, "b"), row(3, 7, 2, "c"))
    spec, layout = table.halves.spec, table.halves.layout
    entry = open_replacement(spec, layout, (["a"], ["a2"]), created_at="2021-09-24T06:02:31.000+00:00")
    report = table.run()
    assert report.merged[0].segments == ("b", "c")
    assert report.sentence.endswith(f"; 1 segment stays as it is: replacement '{entry.id}' is to replace them.")


def test_an_open_replacement_that_comes_meanwhile_is_heeded(make: Callable[..., Merging]) -> None:
    table = make()
    table.add(row(1, 5, 0, "a"), row(2, 6, 1, "b"))
    spec, layout = table.halves.spec, table.halves.layout
    table.meanwhile = lambda: open_replacement(
        spec, layout, (["a"], ["a2"]), created_at="2021-09-24T06:02:31.000+00:00"
    )
    assert not table.run().committed
    assert table.segments() == ["a", "b"]


def test_corrections_of_what_flows_brought_stay_by_themselves(make: Callable[..., Merging]) -> None:
    table = make(changes={"by_flows": True})
    table.add(row(1, 5, 0, "a"), row(2, 6, 1, "b"), row(3, 7, 2, "corrected"))
    table.halves.commit_entry("replace", segments_from=["corrected"], segments_to=["corrected"])
    report = table.run()
    assert report.merged[0].segments == ("a", "b")
    assert "a refresh has to tell apart" in report.sentence


def test_a_hidden_row_does_not_take_the_place_of_one_that_is_seen(make: Callable[..., Merging]) -> None:
    table = make(daily(MergeType.LATEST), mode=BoundaryMode.PINOT, upsert=True, compare="amount")
    table.halves.spec = replace(table.halves.spec, boundary_lag_ms=10)
    table.add(row(1, 5, 0, "a", 1.0), row(2, 6, 1, "b", 1.0), row(1, 20, 2, "c", 9.0))  # rows to 10 are seen
    before = table.ask()
    assert [found[0] for found in before] == [1, 2]
    report = table.run()
    assert report.merged[0].segments == ("a", "b")
    assert report.sentence.endswith(f"; 1 segment stays as it is: {HIDDEN}.")
    assert table.ask() == before


def test_flows_keep_rows_of_their_own(make: Callable[..., Merging]) -> None:
    """A refresh of one takes its rows away, and the other's has to be there then."""
    table = make(daily(MergeType.LATEST), upsert=True, changes={"by_flows": True})
    other = KEY._replace(connector="other")
    table.add(row(1, 5, 0, "a"), row(1, 6, 1, "a"), row(1, 7, 0, "b", key=other))
    (merged,) = table.run().merged
    assert (merged.rows_read, merged.rows_written) == (3, 2)


def test_a_plan_of_a_backfill_keeps_the_segments_of_its_buckets(make: Callable[..., Merging]) -> None:
    table = make()
    table.add(row(1, 5, 0, "a"), row(2, 6, 1, "b"), row(3, DAY, 2, "c"), row(4, DAY + 1, 3, "d"))
    half = table.half()
    bucket = PlannedBucket(0, DAY, BucketState.PRESENT, Counts(), 0)
    units = (Unit(0, (0,), {"a": half.files_of("a")}, ()),)
    created = datetime.fromtimestamp(table.now / 1000, UTC).isoformat()
    plan = Plan("backfill-1", "orders", created, "x", {}, half.table_id, half.version, None, "", "t", (bucket,), units)
    plans.publish(table.halves.layout, table.halves.layout.root / "staging" / "p", plan)
    report = table.run()
    assert report.merged[0].segments == ("c", "d")
    assert report.sentence.endswith("; 2 segments stay as they are: backfill 'backfill-1' is to correct their times.")
    table.now += DAY + 1  # nobody has run it for a day
    assert table.run().merged[0].segments == ("a", "b")


def test_a_table_without_the_task_says_so(make: Callable[..., Merging]) -> None:
    table = make()
    with pytest.raises(SpecError, match="has no MergeRollupTask"):
        run_merges(TableContext(table.bench, orders_spec(), table.halves.layout))


def test_foreign_segments_names_are_quoted(make: Callable[..., Merging]) -> None:
    table = make()
    table.add(row(1, 5, 0, "it's %41 a"), row(2, 6, 1, "b:c d"))
    assert table.run().committed
    assert [found[0] for found in table.ask()] == [1, 2]
