"""Retention on real halves: what goes, what stays in its place, and what queries show before and after."""

from __future__ import annotations

import fcntl
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.json_flavor import JsonFlavor
from hybrid.config.table_config import BoundaryMode, Half, MessageFormat, MoveConfig, StreamConfig, UpsertConfig
from hybrid.errors import ConflictError, QueryError, SpecError
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.log import open_half
from hybrid.lake.log_entries import own_states
from hybrid.move.boundary_override import OverrideRequest, change_boundary
from hybrid.move.retention import run as retention_run
from hybrid.move.retention.report import RetentionReport
from hybrid.move.retention.run import run_retention
from hybrid.query.engine import QueryOptions, run
from hybrid.query.tail import NoTail
from hybrid.table.boundary import Boundary
from hybrid.table.columns import files_segment, rejected_segment
from hybrid.table.state import Consuming
from tests.move.clocked import DAY, Clocked
from tests.query.halves import KEY, Halves, Row, orders_spec

pytestmark = pytest.mark.spark

OFFLINE, REALTIME = Half.OFFLINE, Half.REALTIME
ALL = "select order_id from orders limit 1000"


def row(order: int, time: int, offset: int, segment: str, amount: float = 1.0, **more: Any) -> Row:
    """A row of `amount`, which upsert tables here compare by, at `time` ms."""
    deleted = {"gone": more.get("op") == "delete"} if "op" in more else {}
    values = {"order_id": order, "customer": segment, "amount": amount, "ts": time, **deleted}
    return Row(values, time, offset, segment=segment, **more)


def rt(number: int) -> str:
    """The name of a realtime segment."""
    return f"orders__0__{number}__20210924T0602Z"


class Aging(Clocked):
    """A table whose rows expire."""

    def run(self, **options: bool) -> RetentionReport:
        return run_retention(self.halves.context(self.bench), **options)

    def ids(self, sql: str = ALL) -> list[int]:
        options = QueryOptions(tail=NoTail(), now_ms=lambda: self.now)
        return sorted(found[0] for found in run(sql, self.halves, options).rows)

    def boundary(self) -> Boundary:
        return self.half(OFFLINE).offline.boundary

    def half(self, half: Half) -> Any:
        return open_half(self.halves.layout.half(half))

    def segments(self, half: Half) -> set[str]:
        return {file.segment for file in self.half(half).files}

    def set_boundary(self, time_ms: int | None) -> Any:
        wish = OverrideRequest(clear=True) if time_ms is None else OverrideRequest(time_ms)
        return change_boundary(self.halves.context(self.bench), wish)


@pytest.fixture
def make(workbench: CommitContext, tmp_path: Path) -> Callable[..., Aging]:
    """A table of which `retention` keeps the days of each half; `compare` is its comparison column."""

    def made(
        retention: Mapping[Half, int],
        *,
        now: int = 10 * DAY,
        compare: str = "amount",
        mode: BoundaryMode | None = None,
        halves: Iterable[Half] = tuple(Half),
        **options: Any,
    ) -> Aging:
        spec = orders_spec(halves=halves, **options)
        spec = replace(spec, retention={half: days * DAY for half, days in retention.items()}, boundary_lag_ms=DAY)
        if spec.upsert is not None:
            spec = replace(spec, upsert=UpsertConfig(compare, spec.upsert.delete_column))
        return Aging(Halves.create(tmp_path, spec, mode), workbench, now)

    return made


def moved(table: Aging, rows: Mapping[str, list[Row]], time_ms: int, frontier: int) -> None:
    """Offline segments as a move leaves them, with the boundary (time, frontier)."""
    mode = table.boundary().mode
    boundary = replace(table.boundary(), time_ms=time_ms, frontier={KEY: frontier}, mode=mode)
    table.halves.commit_offline([one for found in rows.values() for one in found], boundary)


def ingested(table: Aging, rows: list[Row], **changes: Any) -> None:
    table.halves.realtime = table.half(REALTIME).realtime
    end = max(one.offset for one in rows if one.offset is not None) + 1
    table.halves.commit_realtime(rows, **{"offsets": {KEY: end}, **changes})


def five_days(table: Aging) -> None:
    """Rows 0 to 4, one a day and a segment each in both halves, those of days 0 to 3 moved."""
    for day in range(5):
        ingested(table, [row(day, day * DAY, day, rt(day))])
    moved(table, {f"o{day}": [row(day, day * DAY, day, f"o{day}")] for day in range(4)}, 4 * DAY, 5)


def test_whole_segments_of_both_halves_go_by_their_age(make: Callable[..., Aging]) -> None:
    table = make({OFFLINE: 8, REALTIME: 7})
    five_days(table)
    before = {half: table.half(half).version for half in Half}
    report = table.run(dry_run=True)
    assert report.dry_run and not report.committed and "Would drop 2 segments of OFFLINE" in report.sentence
    assert {half: table.half(half).version for half in Half} == before

    report = table.run()
    assert report.segments == {"OFFLINE": ("o0", "o1"), "REALTIME": (rt(0), rt(1), rt(2))}
    assert report.sentence == (
        "Dropped 2 segments of OFFLINE with 2 rows from before 1970-01-03T00:00:00Z and 3 segments of REALTIME with "
        "3 rows from before 1970-01-04T00:00:00Z of 'orders'."
    )
    assert table.segments(OFFLINE) == {"o2", "o3"} and table.segments(REALTIME) == {rt(3), rt(4)}
    assert table.ids() == [2, 3, 4]
    assert table.boundary() == Boundary(4 * DAY, {KEY: 5}, floor_ms=2 * DAY + 1)
    assert {half: table.half(half).version for half in Half} == {half: at + 1 for half, at in before.items()}
    assert table.half(REALTIME).realtime.offsets == {KEY: 5}
    then = "SET asOf = 'orders[OFFLINE={} REALTIME={}]'; " + ALL
    assert table.ids(then.format(before[OFFLINE], before[REALTIME])) == [0, 1, 2, 3, 4], "its files stay"
    with pytest.raises(QueryError, match="the two never stood together"):
        table.ids(then.format(before[OFFLINE], before[REALTIME] + 1))

    again = table.run()
    assert not again.committed and again.sentence == (
        "Nothing to drop in 'orders': no segment of OFFLINE ends before 1970-01-03T00:00:00Z, the oldest ends at "
        "1970-01-03T00:00:00Z; no segment of REALTIME ends before 1970-01-04T00:00:00Z, the oldest ends at "
        "1970-01-04T00:00:00Z."
    )


def test_a_clock_that_jumps_back_drops_nothing_more(make: Callable[..., Aging]) -> None:
    table = make({OFFLINE: 8, REALTIME: 8})
    five_days(table)
    table.run()
    shown, boundary = table.ids(), table.boundary()
    table.now -= 5 * DAY
    assert not table.run().committed
    assert (table.ids(), table.boundary()) == (shown, boundary)


def test_realtime_rows_go_only_when_they_have_moved_and_are_sealed(make: Callable[..., Aging]) -> None:
    table = make({REALTIME: 1})
    five_days(table)
    late = row(9, 0, 5, rt(5))
    consuming = row(10, 0, 6, rt(6))
    ingested(table, [late])
    ingested(table, [consuming], consuming={KEY: Consuming(rt(6), 6, 6, 1, 1, 0)})
    report = table.run()
    assert report.segments == {"REALTIME": tuple(rt(day) for day in range(4))}
    assert [(one.segments, one.why) for one in report.kept] == [
        ((rt(6),), "not sealed yet"),
        ((rt(5), rt(4)), "2 rows of theirs have not moved yet"),
    ]
    assert "2 segments of REALTIME are kept: 2 rows of theirs have not moved yet" in report.sentence
    assert table.ids() == [0, 1, 2, 3, 4, 9, 10]
    assert table.boundary().floor_ms == 3 * DAY + 1


def test_rejected_rows_and_files_of_flows_stay(make: Callable[..., Aging]) -> None:
    table = make({REALTIME: 1}, halves=(REALTIME,))
    bad = Row({}, None, 0, segment=rejected_segment("orders"), reason="no JSON", raw=b"{")
    file = Row({}, None, None, key=None, segment=files_segment("orders"), reason="/a.json")
    ingested(table, [bad, file, row(1, 0, 1, rt(0)), row(2, 10 * DAY, 2, rt(1))])
    assert table.run().segments == {"REALTIME": (rt(0),)}
    assert table.segments(REALTIME) == {rejected_segment("orders"), files_segment("orders"), rt(1)}
    assert table.ids() == [2]


def test_an_override_is_set_retention_runs_the_override_is_cleared(make: Callable[..., Aging]) -> None:
    table = make({OFFLINE: 9, REALTIME: 7})
    five_days(table)
    table.set_boundary(DAY)
    assert table.ids() == [0, 1, 2, 3, 4]
    table.run()
    assert table.segments(OFFLINE) == {"o1", "o2", "o3"} and table.segments(REALTIME) == {rt(3), rt(4)}
    assert table.ids() == [1, 2, 3, 4], "row 0 has expired; rows 1 and 2 come from OFFLINE now"
    table.set_boundary(None)
    assert table.ids() == [1, 2, 3, 4], "nothing vanishes"
    with pytest.raises(ConflictError, match="a purge or retention has removed rows before"):
        table.set_boundary(2 * DAY)
    table.set_boundary(3 * DAY)
    assert table.ids() == [1, 2, 3, 4]


def test_what_expired_offline_does_not_come_back_from_realtime(make: Callable[..., Aging]) -> None:
    table = make({OFFLINE: 8})
    five_days(table)
    assert table.run().floor_ms == DAY + 1
    assert table.ids() == [2, 3, 4] and rt(0) in table.segments(REALTIME)
    with pytest.raises(ConflictError):
        table.set_boundary(DAY)


def test_rows_past_the_boundary_expire_and_hide_nothing(make: Callable[..., Aging]) -> None:
    """History at or past T goes by its age; realtime rows of these times that have not moved are seen all along."""
    table = make({OFFLINE: 1})
    ingested(table, [row(1, 0, 0, rt(0)), row(2, 5 * DAY, 1, rt(0))])
    moved(table, {"o": [row(1, 0, 0, "o")]}, DAY, 2)
    table.halves.commit_offline([row(3, 6 * DAY, 0, "history")], kind="history")
    assert table.run().segments == {"OFFLINE": ("o", "history")}
    assert table.boundary().floor_ms == DAY
    assert table.ids() == [2]


@pytest.mark.parametrize("with_frontier", [False, True])
def test_mode_pinot_keeps_its_limit_when_all_of_offline_expires(
    make: Callable[..., Aging], with_frontier: bool
) -> None:
    table = make({OFFLINE: 1, REALTIME: 1}, mode=BoundaryMode.PINOT)
    for day in range(5):
        ingested(table, [row(day, day * DAY, day, rt(day))])
    offline = [row(day, day * DAY, day, f"o{day}") for day in range(4)]
    frontier = {KEY: 5} if with_frontier else {}
    table.halves.commit_offline(offline, Boundary(4 * DAY if with_frontier else None, frontier, BoundaryMode.PINOT))
    assert table.ids() == [0, 1, 2, 3, 4]
    report = table.run()
    assert table.segments(OFFLINE) == set() and report.floor_ms is not None
    # By time alone REALTIME answers from the limit on, a day before the last offline row; by (T, F) that row moved too.
    assert table.ids() == ([4] if with_frontier else [3, 4])
    assert table.segments(REALTIME) == ({rt(4)} if with_frontier else {rt(3), rt(4)})
    assert not table.run().committed


def test_one_half_alone_goes_by_age(make: Callable[..., Aging]) -> None:
    table = make({OFFLINE: 9}, halves=(OFFLINE,))
    table.halves.commit_offline([row(1, 0, 0, "a"), row(2, 5 * DAY, 1, "b")])
    report = table.run()
    assert (report.segments, report.floor_ms, table.ids()) == ({"OFFLINE": ("a",)}, None, [2])


# Upsert


def test_an_expired_winner_takes_its_older_versions_with_it(make: Callable[..., Aging]) -> None:
    """Compared by amount: key 1 wins in an old segment, and has an older version in one that stays."""
    table = make({OFFLINE: 5}, upsert=True)
    moved(
        table,
        {
            "old": [row(1, 0, 0, "old", 100.0), row(2, 0, 1, "old", 100.0)],
            "new": [row(1, 6 * DAY, 2, "new", 50.0), row(3, 6 * DAY, 3, "new", 1.0)],
        },
        7 * DAY,
        4,
    )
    assert table.ids() == [1, 2, 3]
    report = table.run()
    assert (report.rows, report.markers, table.ids()) == ({"OFFLINE": 1}, 1, [3])
    assert "1 delete marker of keys with older versions stay in their place" in report.sentence
    assert table.segments(OFFLINE) == {"old", "new"}
    again = table.run()
    assert not again.committed and [one.why for one in again.kept] == [
        "1 delete marker that older versions of their keys need"
    ]
    table.now += 10 * DAY
    assert table.run().segments == {"OFFLINE": ("old", "new")}
    assert (table.segments(OFFLINE), table.ids()) == (set(), [])


def test_an_older_version_in_realtime_does_not_come_back(make: Callable[..., Aging]) -> None:
    table = make({OFFLINE: 5, REALTIME: 5}, upsert=True)
    ingested(table, [row(1, 0, 0, rt(0), 100.0), row(2, 0, 1, rt(0), 1.0)])
    moved(table, {"o": [row(1, 0, 0, "o", 100.0), row(2, 0, 1, "o", 1.0)]}, DAY, 2)
    ingested(table, [row(1, 7 * DAY, 2, rt(1), 50.0), row(2, 7 * DAY, 3, rt(1), 2.0)])
    assert table.ids("select order_id from orders where amount < 10 limit 10") == [2]
    report = table.run()
    assert (report.markers, report.segments) == (1, {"OFFLINE": ("o",), "REALTIME": (rt(0),)})
    assert table.ids() == [2]


def test_a_delete_marker_stays_as_long_as_an_older_version_does(make: Callable[..., Aging]) -> None:
    table = make({OFFLINE: 5}, upsert=True, deletes=True)
    live = {"op": "row"}
    moved(
        table,
        {
            "marker": [row(1, 0, 1, "marker", 9.0, op="delete"), row(2, 0, 2, "marker", 9.0, op="delete")],
            "older": [row(1, 6 * DAY, 0, "older", 1.0, **live)],
        },
        7 * DAY,
        3,
    )
    report = table.run()
    assert (report.rows, report.markers, table.ids()) == ({"OFFLINE": 1}, 1, [])
    # A replacement of the other bucket leaves the key's older row there, and takes nothing of the marker.
    assert not table.run().committed and table.ids() == []


def test_older_versions_that_no_boundary_shows_again_need_no_marker(make: Callable[..., Aging]) -> None:
    """REALTIME keeps both versions that a move has merged, below the floor: they stay hidden without a marker."""
    table = make({OFFLINE: 5}, upsert=True)
    ingested(table, [row(1, 0, 0, rt(0), 50.0), row(1, 1, 1, rt(0), 100.0), row(2, 2, 2, rt(0))])
    moved(table, {"o": [row(1, 1, 1, "o", 100.0), row(2, 2, 2, "o")]}, DAY, 3)
    report = table.run()
    assert (report.markers, table.segments(OFFLINE), table.ids()) == (0, set(), [])


def test_upsert_of_realtime_alone(make: Callable[..., Aging]) -> None:
    table = make({REALTIME: 5}, upsert=True, halves=(REALTIME,))
    ingested(table, [row(1, 0, 0, rt(0), 100.0), row(2, 0, 1, rt(0), 1.0)])
    ingested(table, [row(1, 7 * DAY, 2, rt(1), 50.0)])
    assert table.ids() == [1, 2]
    report = table.run()
    assert (report.markers, report.rows, table.ids()) == (1, {"REALTIME": 1}, [])
    assert not table.run().committed


# Both halves expire, then OFFLINE alone, in a short time and in a long one.
@pytest.mark.parametrize(("seed", "mode"), [(0, "exact"), (2, "exact"), (3, "pinot")])
def test_what_leaves_are_the_rows_that_were_seen_in_segments_that_go(
    make: Callable[..., Aging], seed: int, mode: str
) -> None:
    """Random versions of few keys, some of them deletes, in overlapping segments of both halves, at three moments.

    In mode pinot some of them lie beyond the limit.
    """
    dice = random.Random(seed)
    days = {half: dice.choice([3, 5, 8]) for half in dice.choice([[OFFLINE], [OFFLINE, REALTIME]])}
    table = make(days, upsert=True, deletes=True, now=0, mode=BoundaryMode(mode))
    rows: list[Row] = []
    offline: list[Row] = []
    for number in range(40):
        day, op = dice.randrange(12), "delete" if dice.random() < 0.2 else "row"
        one = row(dice.randrange(8), day * DAY, number, rt(day // 2), dice.randrange(9), op=op)
        rows.append(one)
        if day < 10:
            offline.append(replace(one, segment=f"o{dice.choice([day // 3, (day + 1) // 4])}"))
    for first in range(0, 40, 5):
        ingested(table, rows[first : first + 5])
    moved(table, {"all": offline}, 10 * DAY, 40)
    sql = "select order_id, $segmentName from orders limit 1000"
    options = QueryOptions(tail=NoTail(), now_ms=lambda: table.now)
    for now in (9, 12, 16):
        table.now = now * DAY
        before = {tuple(one) for one in run(sql, table.halves, options).rows}
        dropped = table.run().segments.get("OFFLINE", ())
        after = {tuple(one) for one in run(sql, table.halves, options).rows}
        assert after == {one for one in before if one[1] not in dropped}, (now, dropped)


def test_under_a_limit_the_row_that_won_below_it_leaves_a_marker_too(make: Callable[..., Aging]) -> None:
    """K: 50 at day 0, 100 at day 3 beyond the limit, 30 in Kafka. Both offline ones go: 30 does not come to light."""
    table = make({OFFLINE: 5}, upsert=True, mode=BoundaryMode.PINOT)
    ingested(table, [row(1, 9 * DAY, 0, rt(0), 30.0)])
    rows = {"o0": [row(1, 0, 1, "o0", 50.0)], "o3": [row(1, 3 * DAY, 2, "o3", 100.0)]}
    table.halves.commit_offline([one for found in rows.values() for one in found])
    amount = "select amount from orders limit 10"
    assert table.ids(amount) == [50.0]
    report = table.run()
    assert report.segments == {"OFFLINE": ("o0", "o3")} and "2 delete markers" in report.sentence
    assert table.ids(amount) == []


def test_where_a_move_is_to_come_mode_pinot_drops_no_row_that_has_not_moved(make: Callable[..., Aging]) -> None:
    table = make({REALTIME: 5}, mode=BoundaryMode.PINOT)
    table.halves.spec = replace(table.halves.spec, move=MoveConfig())
    ingested(table, [row(1, 0, 0, rt(0))])
    table.halves.commit_offline([row(2, 9 * DAY, 0, "pushed")])
    report = table.run()
    assert not report.committed and "1 row of theirs have not moved yet" in report.sentence
    assert table.segments(REALTIME) == {rt(0)}


def test_what_offline_dropped_is_told_when_realtime_is_busy(make: Callable[..., Aging]) -> None:
    table = make({OFFLINE: 8, REALTIME: 7})
    five_days(table)
    table.bench.lock_timeout_s = 0.2
    lock = table.halves.layout.lock(REALTIME)
    with lock.open("a+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        report = table.run()
    assert set(report.segments) == {"OFFLINE"} and "left to the next run" in report.sentence
    assert set(table.run().segments) == {"REALTIME"}


# Tables that net deletes


def test_a_delete_does_not_go_before_the_rows_that_it_takes_away(make: Callable[..., Aging]) -> None:
    table = make({OFFLINE: 5})
    stream = StreamConfig(("orders",), "127.0.0.1:1", message=MessageFormat.CHANGE, flavor=JsonFlavor.DEFAULT)
    table.halves.spec = replace(table.halves.spec, stream=stream)
    assert table.halves.spec.nets_deletes
    ingested(table, [row(1, 0, 0, rt(0))], deletes=1)
    kept, gone = row(1, 0, 0, "kept"), row(1, 0, 1, "gone", op="delete")
    gone = replace(gone, values={**kept.values})
    moved(
        table,
        {"early": [row(3, -DAY, 9, "early")], "kept": [kept, row(2, 6 * DAY, 2, "kept")], "gone": [gone]},
        7 * DAY,
        3,
    )
    report = table.run()
    assert report.segments == {"OFFLINE": ("early",)}
    assert "deletes take equal ones away" in report.sentence
    assert {"gone", "kept"} == table.segments(OFFLINE)


# Other acts meanwhile


def test_what_comes_between_the_plan_and_the_commit(make: Callable[..., Aging]) -> None:
    """A backfill brings an older version of a key whose winner is about to go: planned anew, with a marker."""
    table = make({OFFLINE: 5}, upsert=True)
    moved(table, {"old": [row(1, 0, 0, "old", 100.0)], "new": [row(2, 6 * DAY, 1, "new")]}, 7 * DAY, 2)
    table.meanwhile = lambda: table.halves.commit_offline([row(1, 6 * DAY, 2, "b", 50.0)], kind="history")
    report = table.run()
    assert (report.markers, table.ids()) == (1, [2])
    assert any("came first; planning again" in said for said in table.said)


def test_ingestion_goes_on_meanwhile(make: Callable[..., Aging]) -> None:
    table = make({OFFLINE: 8, REALTIME: 7})
    five_days(table)
    table.meanwhile = lambda: ingested(table, [row(7, 9 * DAY, 5, rt(5))])
    assert table.run().rows == {"OFFLINE": 2, "REALTIME": 3}
    assert table.ids() == [2, 3, 4, 7]
    assert not any("planning again" in said for said in table.said)


def test_a_query_between_the_two_commits_sees_what_it_sees_after_them(
    make: Callable[..., Aging], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make({OFFLINE: 8, REALTIME: 8})
    five_days(table)
    seen: list[list[int]] = []
    original = retention_run.commit_act

    def commit(*args: Any, **options: Any) -> int:
        seen.append(table.ids())
        version = original(*args, **options)
        seen.append(table.ids())
        return version

    monkeypatch.setattr(retention_run, "commit_act", commit)
    table.run()
    assert seen == [[0, 1, 2, 3, 4], [2, 3, 4], [2, 3, 4], [2, 3, 4]]


def test_its_acts_say_what_they_did(make: Callable[..., Aging]) -> None:
    table = make({OFFLINE: 8, REALTIME: 7})
    five_days(table)
    table.run()
    acts = {half: next(own_states(table.half(half).path, table.half(half).version))[1].act for half in Half}
    assert {half: act.kind for half, act in acts.items()} == {OFFLINE: "retention", REALTIME: "retention"}
    assert dict(acts[OFFLINE].detail) == {
        "segments": ["o0", "o1"], "rows": 2, "markers": 0, "before_ms": 2 * DAY, "floor_ms": 2 * DAY + 1,
    }  # fmt: skip
    assert dict(acts[REALTIME].detail) == {
        "segments": [rt(0), rt(1), rt(2)], "rows": 3, "markers": 0, "before_ms": 3 * DAY,
        "offline_version": table.half(OFFLINE).version,
    }  # fmt: skip


def test_a_table_that_keeps_its_rows_says_so(make: Callable[..., Aging]) -> None:
    with pytest.raises(SpecError, match="no retention: it keeps its rows for ever"):
        make({}).run()


def test_a_table_without_a_time_column_says_so(make: Callable[..., Aging]) -> None:
    with pytest.raises(SpecError, match="no time column: its rows have no age"):
        make({}, time_column=None).run()
