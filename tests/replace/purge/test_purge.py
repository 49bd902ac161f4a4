"""What a purge removes, what it leaves, and what it refuses: the table of ADR 12."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from hybrid.config.table_config import BoundaryMode, Half, MessageFormat
from hybrid.doctor.halves import contradictions_of_realtime
from hybrid.errors import ConflictError, DataError, SpecError
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.log import open_half
from hybrid.lake.log_entries import read_commit
from hybrid.lake.table_context import TableContext
from hybrid.move.boundary_override import OverrideRequest, change_boundary
from hybrid.move.optimize import OptimizeTuning, run_optimize
from hybrid.replace.backfill.request import ChangeKind, Request, window_of
from hybrid.replace.job_checks import with_asked
from hybrid.replace.lineage import entries_of
from hybrid.replace.purge import survey
from hybrid.replace.purge.places import clear_ended
from hybrid.replace.purge.report import purge_records
from hybrid.replace.purge.scan import scan
from hybrid.replace.revert import revert
from hybrid.table.state import Consuming
from tests.query.halves import KEY, Row
from tests.recorded_progress import Heard
from tests.replace.backfill.lab import BUCKET, Lab, lab_spec, row
from tests.replace.purge.erasing import everything, holding, move_all, purge_rows, reject, stream

pytestmark = pytest.mark.spark
GONE = "customer = 'erase-me'"
NAME = "erase-me"
SEGMENT = "orders__0__0__20210924T0602Z"


def _rows() -> list[Row]:
    """Two buckets; one row of each is to be erased."""
    return [
        row(1, 10, customer=NAME),
        row(2, 20),
        row(3, BUCKET + 10),
        row(4, BUCKET + 20, customer=NAME, timestamp_ms=5),
    ]


@pytest.fixture
def lab(workbench: CommitContext, tmp_path: Path) -> Lab:
    """Rows that have come by the stream and have been moved."""
    return _moved(workbench, tmp_path)


@pytest.fixture(scope="module")
def template(workbench: CommitContext, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    found = _moved(workbench, tmp_path_factory.mktemp("deleted"))
    _delete(found)
    return found


@pytest.fixture
def deleted(template: Lab, tmp_path: Path) -> Lab:
    """The same after those to erase have been deleted: made once, copied for each test."""
    return template.copied(tmp_path)


@pytest.fixture(scope="module")
def upsert_template(workbench: CommitContext, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    found = Lab.create(workbench, tmp_path_factory.mktemp("upsert"), lab_spec(upsert=True))
    older, newer = row(1, 10, customer="b", offset=1), row(1, BUCKET + 5, customer=NAME, offset=2)
    other = row(2, 20, offset=3)
    stream(found, older, newer, other)
    move_all(found, [older, other], "orders_0", BUCKET)
    move_all(found, [newer], "orders_1", 2 * BUCKET)
    _delete(found)
    assert [one[0] for one in found.rows()] == [2]
    return found


@pytest.fixture
def upsert(upsert_template: Lab, tmp_path: Path) -> Lab:
    """Two versions of a key in OFFLINE, the newer of which has become a delete marker; and another key."""
    return upsert_template.copied(tmp_path)


def _moved(bench: CommitContext, folder: Path) -> Lab:
    found = Lab.create(bench, folder, lab_spec())
    stream(found, *_rows())
    move_all(found, _rows()[:2], "orders_0", BUCKET)
    move_all(found, _rows()[2:], "orders_1", 2 * BUCKET)
    return found


def _delete(lab: Lab, where: str = GONE) -> None:
    lab.run(lab.plan(0, 2 * BUCKET, delete=True, where=where))


def test_progress_of_reading_files_moves(
    deleted: Lab, workbench: CommitContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = Heard()
    monkeypatch.setattr(survey, "scan", partial(scan, files_max=2))
    monkeypatch.setattr(workbench, "progress", heard)
    purge_rows(deleted, GONE, dry_run=True)
    assert {label for label, *_ in heard.steps} == {"reading files"}
    done = [step[1] for step in heard.steps]
    assert done[0] == 0 and done == sorted(done) and len(set(done)) > 2 and heard.steps[-1][1] == heard.steps[-1][2]


def test_deleted_rows_go_from_every_place_for_good(deleted: Lab) -> None:
    seen, root = deleted.rows(), deleted.halves.layout.root
    assert len(holding(root, NAME)) > 3  # old files of OFFLINE, REALTIME as it is, samples of the plan
    report = purge_rows(deleted, GONE, reason="request 17", user="ada")
    assert report.rows == {"REALTIME": 2} and {one.place for one in report.files} == {"REALTIME", "OFFLINE"}
    assert holding(root, NAME) == [] and deleted.rows() == seen
    assert [one.matching for one in report.after] == [0] * len(report.after)
    assert "Removed 2 rows of REALTIME and 3 old files of 'orders'" in report.sentence
    assert report.id in [one["id"] for one in purge_records(deleted.halves.layout)]
    assert report.columns == ("customer",) and len(report.condition_sha256) == 64
    newest = deleted.offline.state.act
    assert newest.kind == "purge" and newest.detail["reason"] == "request 17" and newest.detail["user"] == "ada"
    entry = read_commit(deleted.offline.path, deleted.offline.version)
    assert entry is not None and entry.state is not None and not entry.added and not entry.removed, "without rows"
    for swap in entries_of(deleted.offline):
        with pytest.raises(ConflictError, match="no longer retained"):
            revert(deleted.context, swap.id)
    assert deleted.rows() == seen
    again = purge_rows(deleted, GONE)
    assert not again.committed and again.sentence.startswith("Nothing of 'orders' is to be removed")


def test_rows_go_from_segments_that_were_optimized(deleted: Lab) -> None:
    tuning = OptimizeTuning(files_min=2)
    stream(deleted, row(9, 3 * BUCKET))
    seen, root = deleted.rows(), deleted.halves.layout.root
    assert run_optimize(deleted.context, tuning=tuning).files == 2 and deleted.rows() == seen
    assert purge_rows(deleted, GONE).rows == {"REALTIME": 2}
    assert holding(root, NAME) == [] and deleted.rows() == seen


def test_rows_that_queries_show_are_not_touched(lab: Lab) -> None:
    before = [str(path) for path, _ in everything(lab.halves.layout.root)]
    with pytest.raises(ConflictError, match=r"Queries show 2 rows of 'orders' that match.*only removes what has been"):
        purge_rows(lab, GONE)
    assert [str(path) for path, _ in everything(lab.halves.layout.root)] == before


def test_a_dry_run_says_where_they_lie(lab: Lab) -> None:
    report = purge_rows(lab, GONE, dry_run=True)
    assert "Queries show 2 rows" in report.sentence and "Would remove 2 rows of current versions" in report.sentence
    assert not report.committed and purge_records(lab.halves.layout) == []


def test_the_log_forgets_keys_and_times_of_files_that_go(lab: Lab) -> None:
    upsert = Lab.create(lab.bench, lab.folder / "keyed", lab_spec(upsert=True))
    telling = 77_770_123
    rows = [row(telling, 10, customer=NAME), row(2, 20)]
    stream(upsert, *rows)
    move_all(upsert, rows, "orders_0", BUCKET)
    for number in range(12):  # past a checkpoint
        stream(upsert, row(100 + number, 5 * BUCKET + number))
    upsert.run(upsert.plan(0, BUCKET, delete=True, where=f"order_id = {telling}"))
    seen = upsert.rows()
    assert holding(upsert.halves.layout.root, str(telling))
    report = purge_rows(upsert, f"order_id = {telling}")
    assert holding(upsert.halves.layout.half(Half.REALTIME), str(telling)) == []
    left = holding(upsert.halves.layout.half(Half.OFFLINE), str(telling))
    # What the statement that deleted it said is the audit's; of rows nothing is left.
    assert all(path.endswith(".json") for path in left) and report.remembered == ()
    assert upsert.rows() == seen
    spark = upsert.bench.spark
    for half in Half:  # readers that know nothing of us still read both
        assert spark.read.format("delta").load(str(upsert.halves.layout.half(half))).count() > 0
        spark.sql(f"DESCRIBE HISTORY delta.`{upsert.halves.layout.half(half)}`").collect()


def test_other_corrections_can_still_be_reverted(lab: Lab) -> None:
    lab.run(lab.plan(BUCKET, 2 * BUCKET, update="amount = 9", where="order_id = 3"))
    entry = entries_of(lab.offline)[0]
    move_all(lab, [row(9, 30, customer=NAME)], "orders_late", 2 * BUCKET)
    lab.run(lab.plan(0, BUCKET, delete=True))
    purge_rows(lab, "order_id = 9")
    revert(lab.context, entry.id)
    assert [one for one in lab.rows() if one[0] == 3] == [(3, "a", 1.0, BUCKET + 10)]


def test_consuming_segments_keep_count(deleted: Lab) -> None:
    deleted.halves.realtime = replace(
        deleted.realtime.realtime, consuming={KEY: Consuming(SEGMENT, 0, 1, 5, 99, 0)}, sequences={KEY: 1}
    )
    deleted.halves.commit_realtime([row(9, 9 * BUCKET)], offsets={KEY: 10})
    purge_rows(deleted, GONE)
    half = deleted.realtime
    assert half.realtime.consuming[KEY].rows == 3 and half.realtime.offsets == {KEY: 10}
    assert list(contradictions_of_realtime(deleted.spec, half.realtime, half.files)) == []


def test_no_boundary_falls_to_where_rows_are_missing(deleted: Lab) -> None:
    change_boundary(deleted.context, OverrideRequest(5, accepted=True))
    with pytest.raises(ConflictError, match="is set by hand"):
        purge_rows(deleted, GONE)
    change_boundary(deleted.context, OverrideRequest(clear=True))
    purge_rows(deleted, GONE)
    with pytest.raises(ConflictError, match="a purge or retention has removed rows before"):
        change_boundary(deleted.context, OverrideRequest(BUCKET + 20))
    seen = deleted.rows()
    change_boundary(deleted.context, OverrideRequest(BUCKET + 21))
    assert deleted.rows() == seen


def test_in_mode_pinot_the_limit_stays(workbench: CommitContext, tmp_path: Path) -> None:
    lab = Lab.create(workbench, tmp_path, lab_spec(), BoundaryMode.PINOT)
    day = 86_400_000
    stream(lab, row(1, 10, customer=NAME), row(2, 20), row(3, 5 * day))
    lab.lay("orders_0", row(2, 20), row(7, 30), row(8, 3 * day))
    assert [one[0] for one in lab.rows()] == [2, 3, 7]
    purge_rows(lab, GONE)
    assert [one[0] for one in lab.rows()] == [2, 3, 7] and lab.offline.offline.boundary.floor_ms is not None
    assert holding(lab.halves.layout.root, NAME) == []


# Upsert


def test_markers_go_with_the_last_version_of_their_key(upsert: Lab) -> None:
    report = purge_rows(upsert, "order_id = 1")
    assert [one[0] for one in upsert.rows()] == [2]
    assert {found["order_id"] for _, found in everything(upsert.halves.layout.root)} == {2}
    assert report.rows["OFFLINE"] >= 2


def test_markers_stay_for_conditions_on_more_than_the_key(upsert: Lab) -> None:
    purge_rows(upsert, GONE)
    assert [one[0] for one in upsert.rows()] == [2], "the older version is still dead"
    assert holding(upsert.halves.layout.root, NAME) == []


def test_markers_stay_while_messages_may_be_on_their_way(upsert: Lab) -> None:
    report = purge_rows(upsert, "order_id = 1", takes_markers=False)
    assert "1 delete marker that match stay" in report.sentence
    found = [one for _, one in everything(upsert.halves.layout.half(Half.OFFLINE))]
    assert sorted((one["order_id"], one["_hy_op"]) for one in found) == [(1, "delete"), (2, "row")]


def test_versions_below_the_winner_go(workbench: CommitContext, tmp_path: Path) -> None:
    """A correction in the stream itself: the newest version is another one, the old ones are still stored."""
    upsert = Lab.create(workbench, tmp_path, lab_spec(upsert=True))
    stream(upsert, row(1, 10, customer=NAME, offset=1), row(1, 20, customer="b", offset=2))
    assert purge_rows(upsert, GONE).rows == {"REALTIME": 1}
    assert upsert.rows() == [(1, "b", 1.0, 20)] and holding(upsert.halves.layout.root, NAME) == []


# What is refused, what comes between


def test_tables_that_count_deletes_are_refused(lab: Lab) -> None:
    assert lab.spec.stream is not None
    spec = replace(lab.spec, stream=replace(lab.spec.stream, message=MessageFormat.DEBEZIUM))
    lab.halves.spec = spec
    with pytest.raises(SpecError, match="each delete takes an equal row away"):
        purge_rows(lab, GONE)


def test_a_plan_that_would_bring_rows_back_is_refused(deleted: Lab) -> None:
    rows = [{"order_id": 1, "customer": NAME, "amount": 1.0, "ts": 10}]
    plan = deleted.plan(0, BUCKET, rows=rows)
    with pytest.raises(ConflictError, match=rf"'{plan.id}' has staged 1 row that match"):
        purge_rows(deleted, GONE)
    clear_ended(deleted.halves.layout)  # it has not ended
    with pytest.raises(ConflictError):
        purge_rows(deleted, GONE)


def test_a_plan_from_before_a_purge_does_not_run(deleted: Lab) -> None:
    plan = deleted.plan(BUCKET, 2 * BUCKET, update="amount = 7", where="order_id = 3")
    purge_rows(deleted, "order_id = 1")
    with pytest.raises(ConflictError, match="has purged rows since"):
        deleted.run(plan)


def test_files_of_commits_under_way_stay(deleted: Lab) -> None:
    """A file that no version names was left by a killed act, or another tool is about to commit it: age tells."""
    old = next(
        path for path, found in everything(deleted.halves.layout.half(Half.OFFLINE)) if found["customer"] == NAME
    )
    stranger = old.with_name("part-stranger.parquet")
    stranger.write_bytes(old.read_bytes())
    torn = old.with_name("part-torn.parquet")
    torn.write_bytes(old.read_bytes()[:100])
    with pytest.raises(ConflictError, match=r"not complete: file part-stranger\.parquet .* which no version .*torn"):
        purge_rows(deleted, GONE)
    assert "not complete" in purge_records(deleted.halves.layout)[0]["sentence"]
    assert stranger.exists() and torn.exists()
    for path in (stranger, torn):
        os.utime(path, (0, 0))
    purge_rows(deleted, GONE)
    assert not stranger.exists() and not torn.exists() and holding(deleted.halves.layout.root, NAME) == []


def _at_milestone(lab: Lab, word: str, then: Callable[[], None]) -> None:
    """Has the lab's workbench call back once, when it says a word."""
    done: list[bool] = []

    class Told:
        def say(self, message: str) -> None:
            if word in message and not done:
                done.append(True)
                then()

        def step(self, label: str, done: int, total: int | None) -> None:
            pass

    lab.bench = replace(lab.bench, progress=Told())


def test_rows_that_arrive_meanwhile_stay_and_a_second_purge_is_refused(deleted: Lab) -> None:
    refused: list[str] = []

    def meanwhile() -> None:
        with pytest.raises(ConflictError, match="Another purge"):
            purge_rows(deleted, GONE)
        refused.append("second")
        stream(deleted, row(50, 9 * BUCKET, customer=NAME))

    _at_milestone(deleted, "Writing", meanwhile)
    report = purge_rows(deleted, GONE)
    assert refused == ["second"] and [one[0] for one in deleted.rows()] == [2, 3, 50]
    assert "1 row that match are shown: they have arrived since" in report.sentence


def test_a_revert_meanwhile_shows_the_rows_again(deleted: Lab) -> None:
    entries = [entry.id for entry in entries_of(deleted.offline)]
    bench = deleted.bench

    def take_back() -> None:
        for entry in entries:
            revert(TableContext(bench, deleted.spec, deleted.halves.layout), entry)

    _at_milestone(deleted, "Writing", take_back)
    report = purge_rows(deleted, GONE)
    assert [one[0] for one in deleted.rows()] == [1, 2, 3, 4] and sum(one.shown for one in report.after) == 2


def test_a_query_on_files_that_went_begins_anew(deleted: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    from hybrid.query import engine

    planned = engine.plan_query
    calls: list[int] = []

    def slow(*args: object, **more: object) -> object:
        plan = planned(*args, **more)  # type: ignore[arg-type]
        calls.append(1)
        if len(calls) == 1:
            purge_rows(deleted, GONE)
        return plan

    monkeypatch.setattr(engine, "plan_query", slow)
    found = deleted.query("SELECT COUNT(*) FROM orders_REALTIME")
    assert found.rows[0][0] == 2 and len(calls) == 2


def test_a_current_file_that_is_not_there_is_no_proof(deleted: Lab) -> None:
    lost = Path(deleted.realtime.files[0].path)
    aside = lost.rename(deleted.folder / "aside.parquet")
    with pytest.raises(DataError, match="the newest version of REALTIME has this data file, and it is not there"):
        purge_rows(deleted, GONE)
    aside.rename(lost)
    purge_rows(deleted, GONE)
    assert holding(deleted.halves.layout.root, NAME) == []


def test_samples_of_expectations_go_from_plans_and_logs(lab: Lab) -> None:
    """What an expectation shows of the rows that it warns of stands in the plan, and in the log with the swap."""
    warn = with_asked(lab.spec, (), ("warn: amount < 0",))
    request = Request(
        ChangeKind.UPDATE,
        window_of(lab.spec, lab.offline.offline.boundary, 0, BUCKET),
        None,
        {"amount": "7"},
        expectations=warn,
    )
    lab.run(lab.plan_of(request))
    _delete(lab)
    offline = lab.halves.layout.half(Half.OFFLINE) / "_delta_log"
    assert holding(offline, NAME)
    purge_rows(lab, GONE)
    assert holding(lab.halves.layout.root, NAME) == []
    lab.bench.spark.sql(f"DESCRIBE HISTORY delta.`{offline.parent}`").collect()


# Rejected messages


def test_rejected_messages_go_as_far_as_they_can_be_told(deleted: Lab) -> None:
    going = [
        b'{"order_id": "no number", "customer": "erase-me", "ts": 1}',  # told, and it matches
        b'{"after": {"customer": "erase-me"}}',
        b'[{"customer": "b"}, {"customer": "erase-me"}]',
        b'{"customer": "erase-me", "ts": ',  # cannot be read, but its bytes say so
    ]
    staying = [
        b'{"order_id": "no number", "customer": "b", "note": "erase-me"}',  # told: another customer
        b'{"customer": "erase-me-not", "ts": ',
        b"\xff\xfe nothing to read",
    ]
    reject(deleted, *going, *staying)
    report = purge_rows(deleted, GONE)
    left = {found["_hy_raw"] for _, found in everything(deleted.halves.layout.half(Half.REALTIME))} - {None}
    assert left == set(staying) and report.undecided == 2
    assert deleted.realtime.realtime.rejected == len(staying)
    report = purge_rows(deleted, GONE, undecided=True)
    left = {found["_hy_raw"] for _, found in everything(deleted.halves.layout.half(Half.REALTIME))} - {None}
    assert left == {staying[0]} and report.undecided == 0


def test_a_message_that_says_nothing_matches_no_null(lab: Lab) -> None:
    reject(lab, b"nothing to read", b'{"order_id": "x"}')
    report = purge_rows(lab, "customer IS NULL OR NOT customer IN ('nothing')", dry_run=True)
    assert report.undecided == 2


def test_messages_that_cannot_be_decided_by_words_stay(lab: Lab) -> None:
    reject(lab, b'{"ts": "x"}', b"nothing")
    report = purge_rows(lab, "ts > 99999999")
    assert report.undecided == 2 and not report.committed


def test_a_table_without_an_offline_half(workbench: CommitContext, tmp_path: Path) -> None:
    lab = Lab.create(workbench, tmp_path, lab_spec(halves=(Half.REALTIME,)))
    stream(lab, row(2, 20))
    reject(lab, b'{"customer": "erase-me", "order_id": "x"}')
    report = purge_rows(lab, GONE)
    assert report.rows == {"REALTIME": 1} and holding(lab.halves.layout.root, NAME) == []
    assert open_half(lab.halves.layout.half(Half.REALTIME)).state.act.kind == "purge"
