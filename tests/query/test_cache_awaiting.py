"""A cache that awaits commits behind a backlog: what it answers meanwhile, and how it goes back to the stream."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from hybrid.errors import StreamError
from hybrid.query.cache.cache import CachedTable
from hybrid.query.cache.cached_rows import CachedRows
from hybrid.query.cache.stream import Polled
from hybrid.query.cache.tuning import CacheTuning
from hybrid.query.engine import QueryOptions, explain, run
from hybrid.query.tail import TailMessage
from hybrid.table.boundary import INFINITE, Boundary
from tests.query.backlogs import NOW_MS, OTHER, SMALL, Backlog, CappedTail, stored, values
from tests.query.halves import KEY, Halves, ListTail, Row, orders_spec
from tests.query.stepped import SteppedCache


@pytest.fixture
def suspended(backlog: Backlog) -> Backlog:
    """A cache that has read two messages of a stream of 20 in each partition, and awaits commits."""
    backlog.cache.step()
    assert backlog.count() is None, "rows that were never complete do not answer"
    backlog.suspend()
    return backlog


def test_behind_a_backlog_memory_answers_at_its_positions(suspended: Backlog) -> None:
    found = suspended.answer()
    assert found is not None and found.rows == [(4,)] and found.source == "cache"
    assert found.stats.fresh_ms == 0, "nothing is known of the time before"
    assert found.revision.tables[0].tail == {KEY: 4}
    suspended.cache.step()
    assert suspended.count() == 4, "nothing is decoded"


@pytest.mark.slow
def test_behind_a_backlog_memory_is_as_fresh_as_its_commits(suspended: Backlog) -> None:
    suspended.commit(6, 3)
    suspended.halves.commit_realtime([], complete_ms=NOW_MS - 4000)
    suspended.cache.step()
    assert suspended.follower.fresh_ms == NOW_MS - 4000
    suspended.follower.start()
    suspended.cache.step()
    assert suspended.follower.fresh_ms in (None, NOW_MS - 4000)


@pytest.mark.slow
def test_a_backlog_comes_by_its_commits_and_the_rest_by_the_stream(suspended: Backlog) -> None:
    suspended.commit(12, 9)
    assert suspended.count() is None or suspended.count() == 4
    suspended.cache.step()
    assert suspended.rows() == suspended.expected() and suspended.count() == 21
    suspended.commit(20, 19)
    suspended.cache.step()
    assert suspended.count() == 39 and not suspended.follower.mode.is_awaiting and suspended.stream.moves == 1
    suspended.cache.step()
    assert suspended.rows() == suspended.expected() and suspended.count() == 40
    found = suspended.answer()
    assert found is not None and found.stats.fresh_ms > 0
    assert suspended.follower.offsets_from == {"stream": 5, "files": 35}


@pytest.mark.slow
def test_what_is_committed_while_it_is_awaited_is_in_the_answer(suspended: Backlog) -> None:
    table = CachedTable(suspended.cache.opened, 1, suspended.follower, tuning=CacheTuning(await_fresh_s_max=0.05))
    suspended.commit(12, 9)
    assert table.meet() is None
    suspended.cache.step()
    assert table.meet() == 0
    suspended.commit(14, 9)
    suspended.commit(14, 11)
    suspended.cache.step()
    assert table.meet() is not None and suspended.count() == 25


def test_nobody_waits_for_the_end_of_the_stream_while_commits_are_awaited(
    suspended: Backlog, monkeypatch: pytest.MonkeyPatch
) -> None:
    suspended.follower._seen_at = time.monotonic()
    monkeypatch.setattr(suspended.stream, "ends", lambda: pytest.fail("the end is asked for"))
    suspended.follower.await_end(5.0)


@pytest.mark.slow
def test_without_commits_the_stream_is_read_again_and_nothing_goes_back(suspended: Backlog) -> None:
    suspended.follower.mode._deadline = time.monotonic()
    counts = []
    for _ in range(20):
        suspended.cache.step()
        counts.append(suspended.count())
        assert suspended.rows() == suspended.expected()
    assert counts == sorted(counts) and counts[0] == 4 and counts[-1] == 40  # type: ignore[type-var]
    assert not suspended.follower.mode.is_awaiting


def test_commits_are_not_awaited_before_rows_hold_what_was_shown(backlog: Backlog) -> None:
    backlog.cache.step()
    backlog.cache.answers.note(backlog.cache.opened, {KEY: 7})
    for _ in range(2):
        with pytest.raises(AssertionError):
            backlog.suspend()
    assert backlog.cache.rows.positions == {KEY: 6}
    backlog.suspend()
    assert backlog.cache.rows.positions == {KEY: 8}


def test_files_show_what_memory_has_shown_and_no_more(suspended: Backlog) -> None:
    limit = suspended.cache.answers.tail_limit("orders")
    assert limit is not None
    assert limit.ends({KEY: (0, 20), OTHER: (0, 20)}) == {KEY: 4, OTHER: 0}
    assert limit.ends({KEY: (2, 4), OTHER: (0, 0)}) is None, "that is all: the end is reached"
    suspended.cache.answers.note(suspended.cache.opened, {KEY: 6})
    limit = suspended.cache.answers.tail_limit("orders")
    assert limit is not None and limit.ends({KEY: (0, 20), OTHER: (0, 20)}) == {KEY: 6, OTHER: 0}
    assert not suspended.follower.await_noted(0.05), "memory does not answer below that"


@pytest.mark.slow
def test_a_build_from_the_files_while_commits_are_awaited_shows_no_less(suspended: Backlog) -> None:
    suspended.commit(2, 0)
    suspended.cache.step()
    assert suspended.count() == 4
    suspended.follower.start()
    assert suspended.count() is None and not suspended.stream.is_suspended
    limit = suspended.cache.answers.tail_limit("orders")
    assert limit is not None and limit.shown[KEY] == 4
    for _ in range(25):
        suspended.cache.step()
        count = suspended.count()
        assert count is None or count >= 4
    assert suspended.count() == 40


@pytest.mark.slow
def test_a_move_of_rows_that_memory_has_not_read_is_seen_once(suspended: Backlog) -> None:
    """OFFLINE is followed first: its boundary hides the commit's rows, and its files bring them."""
    suspended.commit(12, 9)
    moved = [stored(at, key) for key, end in ((KEY, 12), (OTHER, 9)) for at in range(end)]
    boundary = Boundary(INFINITE, {KEY: 12, OTHER: 9})
    suspended.halves.commit_offline([replace(row, segment="orders_0") for row in moved], boundary)
    suspended.cache.step()
    assert suspended.rows() == suspended.expected() and suspended.count() == 21


@pytest.mark.slow
def test_a_pause_below_the_end_lets_the_stream_go_on(suspended: Backlog) -> None:
    suspended.cache.rows.table = replace(suspended.cache.opened, pause_offsets={KEY.place: 6, OTHER.place: 0})
    suspended.commit(6, 0)
    suspended.cache.step()
    assert not suspended.follower.mode.is_awaiting and suspended.rows() == [0, 1, 2, 3, 4, 5]


@pytest.mark.slow
def test_a_stream_that_fails_while_commits_are_awaited_is_opened_again(
    suspended: Backlog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(wait_s: float) -> Polled:
        raise StreamError("Topic 'orders' was recreated.")

    monkeypatch.setattr(suspended.stream, "poll", fail)
    with pytest.raises(StreamError):
        suspended.cache.step()
    suspended.follower.lose(forget=True)
    assert suspended.cache.answers.tail_limit("orders") is None and suspended.count() is None
    suspended.follower.start()
    for _ in range(25):
        suspended.cache.step()
    assert suspended.count() == 40


@pytest.mark.slow
def test_an_error_between_poll_and_take_loses_nothing(suspended: Backlog, monkeypatch: pytest.MonkeyPatch) -> None:
    suspended.follower.mode._deadline = time.monotonic()
    suspended.cache.step()
    taken = CachedRows.take

    def fail(*_: object) -> None:
        raise StreamError("the memory is gone")

    monkeypatch.setattr(CachedRows, "take", fail)
    with pytest.raises(StreamError):
        suspended.cache.step()
    monkeypatch.setattr(CachedRows, "take", taken)
    suspended.follower.start()
    for _ in range(25):
        suspended.cache.step()
        assert suspended.rows() == suspended.expected()
    assert suspended.count() == 40


@pytest.mark.slow
def test_of_one_key_the_greatest_wins_whichever_way_it_came(tmp_path: Path) -> None:
    """20 by the stream before 15 by a commit; and 30 by a commit before 25 by the stream."""
    times = [10, 20, 15, 30, 25]
    halves = Halves.create(tmp_path, orders_spec(upsert=True))
    row = [{**values(1), "ts": 1_632_463_351_000 + ts} for ts in times]
    tail = ListTail([TailMessage(KEY, at, NOW_MS, json.dumps(row[at]).encode()) for at in range(5)])
    cache = SteppedCache(halves, NOW_MS, tail, tuning=SMALL, poll_max=1, waits=False)
    greatest = []

    def commit(start: int, end: int) -> None:
        halves.commit_realtime([Row(row[at], int(row[at]["ts"]), at) for at in range(start, end)], offsets={KEY: end})

    def look() -> None:
        relation = cache.rows._laid.relation
        found = cache.database.cursor().execute(f"select ts from {relation}").fetchall()
        greatest.append([one[0] - 1_632_463_351_000 for one in found])

    for before in (lambda: None, lambda: commit(0, 1), lambda: commit(1, 4), lambda: None, lambda: None):
        before()
        cache.step()
        look()
    assert greatest == [[10], [20], [30], [30], [30]] and cache.rows.positions == {KEY: 5}


@pytest.mark.slow
def test_the_same_rows_count_whichever_way_they_came(backlog: Backlog) -> None:
    """`totalDocs` counts rows, superseded ones too."""
    while backlog.cache.rows.positions.get(OTHER, 0) < 20:
        backlog.cache.step()
    by_stream = backlog.answer()
    other = Backlog(backlog.halves.layout.root.parent / "other", 20, upsert=backlog.halves.spec.upsert is not None)
    other.cache.step()
    other.commit(20, 20)
    for _ in range(3):
        other.cache.step()
    by_files = other.answer()
    assert by_stream is not None and by_files is not None
    assert by_stream.stats.total_docs == by_files.stats.total_docs == 40


@pytest.mark.slow
def test_an_explanation_says_how_the_stream_is_read(suspended: Backlog) -> None:
    options = QueryOptions(tail=suspended.tail, now_ms=lambda: NOW_MS, cache=suspended.cache.answers)

    def stream(sql: str, used: QueryOptions = options) -> str | None:
        (table,) = explain(sql, suspended.halves, used).tables
        return table.stream

    words = stream("select 1 from orders") or ""
    assert words.startswith("the stream awaits commits for 0.") and "36 offsets are unread" in words
    assert stream("select 1 from orders_OFFLINE") is None
    assert stream("select 1 from orders", QueryOptions(tail=suspended.tail)) is None
    rows = run("explain plan for select 1 from orders", suspended.halves, options).rows
    assert next(text for subject, text in rows if subject == "orders: stream").startswith("the stream awaits commits")
    suspended.follower.mode._deadline = time.monotonic()
    suspended.cache.step()
    assert stream("select 1 from orders") == "the stream is read: 36 offsets are unread"
    capped = QueryOptions(tail=CappedTail(), now_ms=lambda: NOW_MS, cache=suspended.cache.answers)
    assert (stream("select 1 from orders", capped) or "").endswith(
        "36 offsets are unread; the tail of this statement ends at what answers have shown"
    )
    assert stream("select 1 from orders", QueryOptions(tail=CappedTail())) is None
    for _ in range(20):
        suspended.cache.step()
    assert stream("select 1 from orders") == "the stream is read to its end"
    assert suspended.cache.answers.stream_words("orders") == "the stream is read to its end"
    suspended.follower.lose()
    assert stream("select 1 from orders") is None
