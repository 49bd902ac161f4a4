"""What comes between a plan and its run, or between two commits of a run: the table of ADR 10."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hybrid.config.job_spec import JobSpec
from hybrid.config.table_config import ARRIVED, BoundaryMode, TableSpec, UpsertConfig
from hybrid.errors import ConflictError, DataError, QueryError
from hybrid.lake import plans
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.log_entries import read_commit
from hybrid.lake.plans import DesiredState, DesiredStateRecord
from hybrid.lake.table_context import TableContext
from hybrid.move.move import run_move
from hybrid.move.plan import Reach
from hybrid.replace.backfill import plan_run as running
from hybrid.replace.ending import end_replacement
from hybrid.replace.job import run_job
from hybrid.replace.lineage import EntryState, entries_of
from hybrid.replace.opening import open_replacement
from hybrid.replace.revert import revert, revert_backfill
from hybrid.schema.timeformat import TimeFormat
from hybrid.schema.types import DataType
from hybrid.table.boundary import Boundary
from hybrid.table.columns import SEGMENT
from hybrid.table.plans import Plan
from tests.query.halves import KEY, Row
from tests.replace.backfill.lab import BUCKET, Lab, lab_spec, row

pytestmark = pytest.mark.spark
END = 4 * BUCKET
Planned = tuple[Lab, Plan]


class Told:
    """Progress that calls back at each milestone and step."""

    def __init__(self, then: Callable[[str], None]) -> None:
        self._then = then

    def say(self, message: str) -> None:
        self._then(message)

    def step(self, label: str, done: int, total: int | None) -> None:
        self._then(f"{label} {done}")


@pytest.fixture
def lab(workbench: CommitContext, tmp_path: Path) -> Lab:
    """Four buckets of two rows each, a segment for each, all moved."""
    return _filled(Lab.create(workbench, tmp_path, lab_spec()))


@pytest.fixture(scope="module")
def template(workbench: CommitContext, tmp_path_factory: pytest.TempPathFactory) -> Planned:
    found = _filled(Lab.create(workbench, tmp_path_factory.mktemp("planned"), lab_spec()))
    return found, _doubled(found)


@pytest.fixture
def planned(template: Planned, tmp_path: Path) -> Planned:
    """The same, and a plan that doubles all amounts: made once, copied for each test."""
    lab, plan = template
    return lab.copied(tmp_path), plan


def _filled(lab: Lab, **more: Any) -> Lab:
    for number in range(4):
        first = number * BUCKET
        lab.lay(f"orders_{number}", row(2 * number, first + 1, **more), row(2 * number + 1, first + 900, **more))
    lab.lay("orders_last", row(99, END + 1, **more), until=END + BUCKET)
    return lab


def _amounts(lab: Lab) -> dict[int, float]:
    return {found[0]: found[2] for found in lab.rows()}


def _doubled(lab: Lab, start: int = 0, end: int = END) -> Any:
    return lab.plan(start, end, update="amount = amount * 2")


def test_late_rows_that_a_move_brings_stay_as_they_came(planned: Planned) -> None:
    lab, plan = planned
    lab.lay("orders_late", row(50, 10))
    lab.run(plan)
    assert _amounts(lab) == {**dict.fromkeys(range(8), 2.0), 50: 1.0, 99: 1.0}


def test_rows_in_realtime_stay_as_they_came(planned: Planned) -> None:
    lab, plan = planned
    lab.halves.commit_realtime([row(60, 20, offset=2_000_000)], offsets={KEY: 2_000_001})
    assert lab.rows(plan)[-2:] == [(60, "a", 1.0, 20), (99, "a", 1.0, END + 1)]
    lab.run(plan)
    assert _amounts(lab) == {**dict.fromkeys(range(8), 2.0), 60: 1.0, 99: 1.0}


def test_a_segment_that_was_corrected_meanwhile_stops_the_run_before_it_begins(planned: Planned) -> None:
    lab, second = planned
    first = _doubled(lab, 0, BUCKET)
    lab.run(first)
    before = lab.rows()
    with pytest.raises(ConflictError, match=r"segment 'orders_0' has been rewritten since; the newest commit is 'back"):
        lab.run(second)
    assert lab.rows() == before
    with pytest.raises(QueryError, match="has changed since"):
        lab.rows(second)


def test_a_segment_that_another_act_adds_among_the_buckets_stops_the_run(lab: Lab) -> None:
    plan = lab.plan(0, END, rows=[{"order_id": 7, "customer": "b", "amount": 5.0, "ts": 3100}])
    lab.halves.commit_offline(
        [replace(row(70, 3200), segment="orders_history")], lab.offline.offline.boundary, "history"
    )
    with pytest.raises(ConflictError, match="segment 'orders_history' has been added among its buckets"):
        lab.run(plan)
    assert _amounts(lab)[7] == 1.0


def test_a_conflict_in_the_middle_leaves_what_is_done(planned: Planned) -> None:
    lab, first = planned
    second = _doubled(lab, 2 * BUCKET, 3 * BUCKET)

    def then(message: str) -> None:
        if message == "correcting buckets 1":
            other.run(second)

    other, told = lab, Lab(CommitContext(lambda: lab.bench.spark, lab.bench.now_ms, Told(then)), lab.halves, lab.folder)
    with pytest.raises(ConflictError, match="'orders_2' has been rewritten"):
        told.run(first)
    assert _amounts(lab) == {0: 2, 1: 2, 2: 2, 3: 2, 4: 2, 5: 2, 6: 1, 7: 1, 99: 1}


@pytest.mark.parametrize("wish", [DesiredState.PAUSE, DesiredState.CANCEL])
def test_a_run_stops_between_two_commits_and_goes_on_with_what_is_missing(wish: DesiredState, planned: Planned) -> None:
    lab, plan = planned
    layout = lab.halves.layout

    def then(message: str) -> None:
        if message == "correcting buckets 2":
            plans.want(layout, plan.id, DesiredStateRecord(wish))

    told = Lab(CommitContext(lambda: lab.bench.spark, lab.bench.now_ms, Told(then)), lab.halves, lab.folder)
    report = told.run(plan, newest_first=True)
    assert (report.buckets_done, report.stopped) == (2, wish) and "after 2 of 4 buckets" in report.sentence
    assert _amounts(lab) == {**dict.fromkeys(range(4), 1.0), **dict.fromkeys(range(4, 8), 2.0), 99: 1.0}
    if wish is DesiredState.PAUSE:
        assert lab.rows(plan) == [(n, "a", 2.0 if n < 99 else 1.0, ts) for n, _, _, ts in lab.rows()]
    else:
        with pytest.raises(QueryError, match="was cancelled, so nothing of it will be corrected any more"):
            lab.rows(plan)
    plans.want(layout, plan.id, DesiredStateRecord(DesiredState.RUN))
    report = lab.run(plan)
    assert (report.buckets_now, report.buckets_done) == (2, 4) and "2 of them before this run" in report.sentence
    spans = [one for entry in entries_of(lab.offline) for one in entry.lineage.buckets]
    assert sorted(spans) == [(n * BUCKET, (n + 1) * BUCKET) for n in range(4)]
    assert set(_amounts(lab).values()) == {2.0, 1.0} and _amounts(lab)[0] == 2.0


def test_atomic_is_one_commit_with_one_entry(planned: Planned) -> None:
    lab, plan = planned
    before = lab.offline.version
    report = lab.run(plan, atomic=True, reason="prices were net", user="ada")
    (entry,) = entries_of(lab.offline)
    assert lab.offline.version == before + 1 and len(report.acts) == 1 and len(entry.lineage.buckets) == 4
    assert (entry.kind, entry.reason, entry.lineage.user) == ("backfill", "prices were net", "ada")
    assert (entry.lineage.changed, entry.lineage.backfill, entry.lineage.change) == (8, plan.id, "a test")
    commit = read_commit(lab.offline.path, lab.offline.version)
    assert commit is not None and len(commit.added) == 4


def test_two_runs_of_one_plan_do_not_meet(planned: Planned) -> None:
    lab, plan = planned
    layout = lab.halves.layout
    with plans.runner(layout, plan.id):
        assert plans.is_running(layout, plan.id)
        with pytest.raises(ConflictError, match="is being run already"), plans.runner(layout, plan.id):
            pass
    assert not plans.is_running(layout, plan.id)


def test_one_swap_reverted_alone_is_not_done_again_and_reverts_can_be_reverted(planned: Planned) -> None:
    lab, plan = planned
    before = lab.rows()
    lab.run(plan)
    entry = next(one for one in entries_of(lab.offline) if one.lineage.buckets == ((BUCKET, 2 * BUCKET),))
    alone = revert(lab.context, entry.id)
    assert _amounts(lab)[2] == 1.0 and _amounts(lab)[0] == 2.0 and alone.act is not None
    assert lab.run(plan).acts == ()
    report = revert_backfill(lab.context, plan.id)  # the rest
    assert lab.rows() == before and "3 swaps" in report.sentence
    states = {one.state for one in entries_of(lab.offline) if one.lineage.backfill == plan.id}
    assert states == {EntryState.REVERTED}
    with pytest.raises(ConflictError, match="has been reverted already"):
        revert_backfill(lab.context, plan.id)
    rest = entries_of(lab.offline)[0]
    revert(lab.context, alone.act)
    assert _amounts(lab)[2] == 2.0 and _amounts(lab)[0] == 1.0
    assert next(one for one in entries_of(lab.offline) if one.id == entry.id).state is EntryState.ACTIVE
    revert(lab.context, entry.id)  # what took it away and what brought it back cancel out
    assert lab.rows() == before
    revert(lab.context, rest.id)
    assert _amounts(lab)[0] == 2.0 and _amounts(lab)[2] == 1.0


def test_atomic_goes_on_when_one_of_its_units_was_brought_to_its_end_elsewhere(
    planned: Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, plan = planned
    layout, real = lab.halves.layout, running.commit_under_lock

    def then(message: str) -> None:
        plans.want(layout, plan.id, DesiredStateRecord(DesiredState.PAUSE))

    def after_another(*args: Any) -> int:
        monkeypatch.setattr(running, "commit_under_lock", real)
        bench = CommitContext(lambda: lab.bench.spark, lab.bench.now_ms, Told(then))
        assert Lab(bench, lab.halves, lab.folder).run(plan).buckets_done == 1
        return real(*args)

    monkeypatch.setattr(running, "commit_under_lock", after_another)
    report = lab.run(plan, atomic=True)
    assert (report.buckets_now, report.buckets_done) == (3, 4)
    assert _amounts(lab) == {**dict.fromkeys(range(8), 2.0), 99: 1.0}


def test_a_revert_is_refused_whole_when_newer_work_stands_on_a_segment(planned: Planned) -> None:
    lab, first = planned
    lab.run(first)
    lab.run(_doubled(lab, 0, BUCKET))
    before = lab.rows()
    with pytest.raises(ConflictError, match="segment 'orders_0' has been changed again since"):
        revert_backfill(lab.context, first.id)
    assert lab.rows() == before


@pytest.mark.parametrize("kind", [{}, {"upsert": True}], ids=["append", "upsert"])
def test_a_revert_restores_the_stored_rows_also_after_moves_late_rows_and_merges(
    workbench: CommitContext, tmp_path: Path, kind: dict[str, Any]
) -> None:
    """By a checksum over every stored column, arrival and all, of each segment."""
    lab = _filled(Lab.create(workbench, tmp_path, lab_spec(**kind)))
    before = _checksums(lab)
    plan = _doubled(lab, 0, 2 * BUCKET)
    lab.run(plan)
    corrected = _checksums(lab)
    assert {name for name in before if corrected[name] != before[name]} == {"orders_0", "orders_1"}
    # Rows of later buckets arrive, and late ones of those that were corrected; a move takes them all.
    arrivals = [row(60, END + BUCKET + 5, offset=2_000_000), row(61, 20, offset=2_000_001)]
    lab.halves.commit_realtime([*arrivals, row(62, BUCKET + 20, offset=2_000_002)], offsets={KEY: 2_000_003})
    run_move(lab.context, reach=Reach(None, END + 2 * BUCKET))
    _merge(lab, ["orders_2", "orders_3"], "orders_merged")
    lab.bench.spark.sql(f"OPTIMIZE delta.`{lab.offline.path}`")
    seen, stored = {found[0]: found for found in lab.rows()}, _checksums(lab)
    report = revert_backfill(lab.context, plan.id)
    after = _checksums(lab)
    assert "2 swaps" in report.sentence
    assert {name: after[name] for name in ("orders_0", "orders_1")} == {n: before[n] for n in ("orders_0", "orders_1")}
    assert {name for name in stored if after[name] != stored[name]} == {"orders_0", "orders_1"}
    back = {n: (n, "a", 1.0, ts) for n, _, _, ts in seen.values() if n < 4}
    assert {found[0]: found for found in lab.rows()} == {**seen, **back} and {60, 61, 62} < set(seen)


def _checksums(lab: Lab) -> dict[str, str]:
    """Of all stored columns of each offline segment, however its rows are spread over files."""
    stored: dict[str, list[str]] = {}
    for file in lab.offline.files:
        rows = [{**one, SEGMENT: file.segment} for one in pq.ParquetFile(file.path).read().to_pylist()]
        stored.setdefault(file.segment, []).extend(repr(sorted(one.items())) for one in rows)
    return {name: hashlib.sha256("\n".join(sorted(rows)).encode()).hexdigest() for name, rows in stored.items()}


def _merge(lab: Lab, old: list[str], new: str) -> None:
    """Segments become one, as Pinot's merge tasks do it: by its protocol, with the rows that they hold."""
    entry = open_replacement(lab.spec, lab.halves.layout, (old, [new]), created_at=lab.bench.now_iso())
    names = ["order_id", "customer", "amount", "ts"]
    within = ", ".join(f"'{name}'" for name in old)
    rows = lab.query(f"SELECT {', '.join(names)} FROM orders WHERE $segmentName IN ({within}) LIMIT 1000").rows
    (lab.folder / "merged").mkdir()
    (lab.folder / "merged" / "rows.json").write_text(
        "".join(json.dumps(dict(zip(names, r, strict=True))) for r in rows)
    )
    named: dict[str, Any] = {"segment_name_type": "fixed", "segment_name": new}
    job = JobSpec("job.yml", "SegmentCreation", lab.folder / "merged", lab.spec.name, "json", **named)
    run_job(lab.context, job)
    end_replacement(lab.context, entry)
    assert new in lab.segments() and not set(old) & set(lab.segments())


def test_a_move_that_planned_before_a_swap_commits_after_it(planned: Planned) -> None:
    lab, plan = planned
    lab.halves.commit_realtime([row(60, END + BUCKET + 5, offset=2_000_000)], offsets={KEY: 2_000_001})
    said = list[str]()

    def then(message: str) -> None:
        said.append(message)
        if message.startswith("Merging"):
            lab.run(plan)

    bench = CommitContext(lambda: lab.bench.spark, lab.bench.now_ms, Told(then))
    report = run_move(TableContext(bench, lab.spec, lab.halves.layout), reach=Reach(None, END + 2 * BUCKET))
    assert report.moved and not any("planning again" in message for message in said)
    assert _amounts(lab) == {**dict.fromkeys(range(8), 2.0), 60: 1.0, 99: 1.0}
    assert lab.offline.offline.boundary.time_ms == END + 2 * BUCKET


def test_an_older_version_that_comes_late_does_not_bring_a_deleted_key_back(
    workbench: CommitContext, tmp_path: Path
) -> None:
    lab = _filled(Lab.create(workbench, tmp_path, lab_spec(upsert=True, deletes=True)), gone=False)
    plan = lab.plan(0, END, delete=True, where="order_id IN (2, 3)")
    lab.halves.commit_realtime([row(2, 5, offset=2_000_000, gone=False)], offsets={KEY: 2_000_001})
    lab.run(plan)
    assert [found[0] for found in lab.rows()] == [0, 1, 4, 5, 6, 7, 99]
    stored = lab.query("SELECT count(*) FROM orders_OFFLINE").rows
    assert tuple(stored[0]) == (7,)


def test_rows_that_are_compared_by_their_arrival(workbench: CommitContext, tmp_path: Path) -> None:
    spec = lab_spec(upsert=True, deletes=True)
    lab = _filled(Lab.create(workbench, tmp_path, replace(spec, upsert=UpsertConfig(ARRIVED, "gone"))), gone=False)
    lab.run(lab.plan(0, BUCKET, update="amount = 5", where="order_id = 1"))
    lab.run(lab.plan(0, BUCKET, delete=True, where="order_id = 0"))
    assert _amounts(lab) == {1: 5.0, **dict.fromkeys(range(2, 8), 1.0), 99: 1.0}


def test_a_key_that_changes_its_bucket_is_swapped_in_one_commit(workbench: CommitContext, tmp_path: Path) -> None:
    lab = _filled(Lab.create(workbench, tmp_path, lab_spec(upsert=True, deletes=True)), gone=False)
    rows = [
        {"order_id": 5, "customer": "n", "amount": 9.0, "ts": 10, "gone": False},
        {"order_id": 4, "customer": "n", "amount": 9.0, "ts": 2001, "gone": False},
    ]
    plan = lab.plan(0, 3 * BUCKET, rows=rows)
    (unit,) = plan.units
    assert [plan.buckets[place].start for place in unit.buckets] == [0, 2 * BUCKET]
    wanted = lab.rows(plan)
    lab.run(plan)
    assert lab.rows() == wanted and [found[0] for found in wanted] == [2, 3, 4, 5, 6, 7, 99]


def test_rows_outside_of_the_window_are_refused_with_their_place(lab: Lab) -> None:
    rows = [{"order_id": n, "customer": "b", "amount": 1.0, "ts": ts} for n, ts in ((1, 100), (2, 5000))]
    with pytest.raises(DataError, match=r"input.jsonl, line 2: its time 5000 is outside of --from and --to"):
        lab.plan(0, BUCKET, rows=rows)
    assert not plans.plan_ids(lab.halves.layout) and not list((lab.halves.layout.root / "staging").glob("backfill*"))


def test_buckets_without_a_row_of_the_input_are_left_alone_and_named(lab: Lab) -> None:
    plan = lab.plan(0, END, rows=[{"order_id": 1, "customer": "b", "amount": 5.0, "ts": 100}])
    assert plan.warnings == (
        "The input has no row for 3 buckets of the window with 6 rows: what is there stays. "
        "(To remove it, plan a --delete.)",
    )
    lab.run(plan)
    assert _amounts(lab) == {1: 5.0, **dict.fromkeys(range(2, 8), 1.0), 99: 1.0}
    repeated = lab.plan(0, END, rows=[{"order_id": 1, "customer": "b", "amount": 5.0, "ts": 100}])
    assert not repeated.units and repeated.sentence.startswith("Nothing to change in 4 buckets of 'orders' with 7 rows")
    assert [bucket.state.value for bucket in repeated.buckets] == ["corrected", "present", "present", "present"]


def test_rows_of_a_segment_that_lie_outside_are_carried_over(workbench: CommitContext, tmp_path: Path) -> None:
    lab = Lab.create(workbench, tmp_path, lab_spec())
    lab.lay("orders_wide", *[row(n, n * 500) for n in range(8)], until=END)
    plan = lab.plan(1000, 2200, rows=[{"order_id": 20, "customer": "b", "amount": 5.0, "ts": 1500}])
    (unit,) = plan.units
    assert set(unit.replaced) == {"orders_wide"} and len(unit.written) == 2
    lab.run(plan)
    assert [found[0] for found in lab.rows()] == [0, 1, 4, 5, 6, 7, 20]
    assert lab.segments() == ["orders_1500_1500_0", "orders_wide"]


def test_a_segment_that_loses_its_last_row_goes_and_comes_back(lab: Lab) -> None:
    plan, before = lab.plan(BUCKET, 2 * BUCKET, delete=True), lab.rows()
    assert plan.units[0].written == ()
    lab.run(plan)
    assert "orders_1" not in lab.segments() and len(lab.rows()) == 7
    revert_backfill(lab.context, plan.id)
    assert lab.rows() == before and "orders_1" in lab.segments()


def test_in_mode_pinot_the_last_rows_cannot_go(workbench: CommitContext, tmp_path: Path) -> None:
    lab = Lab.create(workbench, tmp_path, lab_spec(), BoundaryMode.PINOT)
    lab.halves.commit_offline(
        [_in("orders_0", row(1, 5)), _in("orders_1", row(2, 1005))], Boundary(mode=BoundaryMode.PINOT)
    )
    with pytest.raises(ConflictError, match="takes the last rows of OFFLINE away"):
        lab.plan(BUCKET, 2 * BUCKET, delete=True)


def test_a_value_that_cannot_be_computed_stops_the_plan(lab: Lab) -> None:
    with pytest.raises(
        DataError, match=r"'a test' cannot be computed for every row of 'orders': .*Nothing was changed"
    ):
        lab.plan(0, END, update="amount = order_id % (order_id - 1)", where="order_id > 0")


def test_staged_rows_are_named_in_the_revision_and_unknown_plans_are_refused(planned: Planned) -> None:
    lab, plan = planned
    found = lab.query("SELECT sum(amount) FROM orders", plan)
    assert tuple(found.rows[0]) == (17.0,) and f"plan={plan.id}" in str(found.revision)
    with pytest.raises(QueryError, match=rf"there is no backfill plan '{plan.id}x' of 'orders'. Did you mean"):
        lab.query(f"SET plan='{plan.id}x'; SELECT count(*) FROM orders")
    with pytest.raises(QueryError, match="there is no backfill plan"):
        lab.query("SET plan='../../x'; SELECT count(*) FROM orders")


def _in(segment: str, one: Row) -> Row:
    return replace(one, segment=segment)


def test_rows_come_in_the_place_of_what_was_rounded_to_their_time(workbench: CommitContext, tmp_path: Path) -> None:
    """A merge has rounded to more than a bucket of the moves, and the config knows nothing of it any more."""
    lab = Lab.create(workbench, tmp_path, lab_spec())
    lab.lay("orders_0", row(1, 0), row(2, END), until=2 * END)
    lab.halves.commit_offline([], lab.offline.offline.boundary.with_step(END))
    plan = lab.plan(0, END, rows=[{"order_id": 1, "customer": "a", "amount": 3.0, "ts": BUCKET + 5}])
    lab.run(plan)
    assert [(one[0], one[2]) for one in lab.rows()] == [(1, 3.0), (2, 1.0)]


NANOS = 1_500_123_456  # 1.5 s, and what milliseconds do not show


def _nanos_spec() -> TableSpec:
    spec = lab_spec()
    form = TimeFormat.parse("1:NANOSECONDS:EPOCH", "schema", "ts", DataType.LONG)
    fields = [replace(one, time_format=form) if one.name == "ts" else one for one in spec.schema.fields]
    return replace(spec, schema=replace(spec.schema, fields=tuple(fields)))


def test_a_name_that_was_taken_meanwhile_becomes_another_of_the_same_exact_times(
    workbench: CommitContext, tmp_path: Path
) -> None:
    lab = Lab.create(workbench, tmp_path, _nanos_spec())
    lab.halves.commit_offline([_in("orders_first", _at(1, 5))], Boundary(END, {KEY: 1_000_000}))
    plan = lab.plan(BUCKET, 2 * BUCKET, rows=[{"order_id": n, "amount": 5.0, "ts": NANOS + n} for n in (20, 29)])
    planned = f"orders_{NANOS + 20}_{NANOS + 29}_0"
    assert [one.name for unit in plan.units for one in unit.written] == [planned]
    late = [_in(planned, _at(7, NANOS + 20)), _in(planned, _at(8, NANOS + 29))]
    lab.halves.commit_offline(late, kind="move")
    lab.run(plan)
    assert lab.segments() == [planned, f"orders_{NANOS + 20}_{NANOS + 29}_1", "orders_first"]
    found = [(order, time) for order, _, _, time in lab.rows()]
    assert found == [(1, 5), (7, NANOS + 20), (8, NANOS + 29), (20, NANOS + 20), (29, NANOS + 29)]


def _at(order_id: int, nanos: int) -> Row:
    return Row({"order_id": order_id, "customer": "a", "amount": 1.0, "ts": nanos}, nanos // 1_000_000, order_id)
