"""A cache that is behind its stream takes rows from commits and from the stream: each row once, whichever is first."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.table_config import Half
from hybrid.errors import StreamError
from hybrid.lake.lock import half_lock
from hybrid.query.cache.cache import CachedTable
from hybrid.query.cache.cached_rows import CachedRows
from hybrid.query.cache.stream import Polled
from hybrid.query.cache.tuning import CacheTuning
from hybrid.query.engine import QueryOptions, QueryResult, explain, run
from hybrid.query.execution import Limits
from hybrid.query.tail import Tail, TailMessage
from hybrid.table.boundary import INFINITE, Boundary, PartitionKey
from tests.query.halves import KEY, Halves, ListTail, Row, orders_spec
from tests.query.stepped import SteppedCache

NOW_MS = 1_632_700_000_000
OTHER = KEY._replace(partition=1)
SHOW = "select order_id from orders order by 1 limit 1000"
SMALL = CacheTuning(tail_offsets_min=2)


def values(number: int) -> dict[str, Any]:
    return {"order_id": number, "customer": "a", "amount": 1.0, "ts": 1_632_463_351_000 + number}


def message(offset: int, key: PartitionKey = KEY) -> TailMessage:
    return TailMessage(key, offset, NOW_MS, json.dumps(values(offset + 100 * key.partition)).encode())


def stored(offset: int, key: PartitionKey = KEY) -> Row:
    row = values(offset + 100 * key.partition)
    return Row(row, int(row["ts"]), offset, key=key, segment=f"orders__{key.partition}__0__20210924T0602Z")


class CappedTail(ListTail):
    """A tail whose messages lie beyond what answers have shown."""

    def read(self, *given: Any) -> Tail:
        return Tail(is_capped=True)


class Backlog:
    """A table whose stream holds `count` messages in each of two partitions, and a cache over it."""

    def __init__(self, folder: Path, count: int, tuning: CacheTuning = SMALL, *, upsert: bool = False) -> None:
        self.halves = Halves.create(folder, orders_spec(upsert=upsert))
        self.tail = ListTail([message(offset, key) for key in (KEY, OTHER) for offset in range(count)])
        self.cache = SteppedCache(self.halves, NOW_MS, self.tail, tuning=tuning, poll_max=2)
        self.committed = {KEY: 0, OTHER: 0}

    def commit(self, *ends: int) -> None:
        """Commits both partitions up to these offsets."""
        before, self.committed = self.committed, dict(zip((KEY, OTHER), ends, strict=True))
        rows = [stored(at, key) for key, end in self.committed.items() for at in range(before[key], end)]
        self.halves.commit_realtime(rows, offsets=self.committed)

    @property
    def stream(self) -> Any:
        return self.cache.stream

    @property
    def follower(self) -> Any:
        return self.cache.followed.follower

    def suspend(self) -> None:
        """A step after which commits are awaited: a message a second is decoded, and commits have earned trust."""
        self.follower.mode.decoded(1000, 1000.0)
        self.follower.mode.committed(0.0, 100, 100)
        self.cache.step()
        assert self.follower.mode.is_awaiting and self.stream.is_suspended

    def answer(self, sql: str = "select count(*) from orders") -> QueryResult | None:
        return self.cache.answers.answer(sql, NOW_MS, Limits(), lambda interrupt: None)

    def count(self) -> int | None:
        found = self.answer()
        return None if found is None else int(found.rows[0][0])

    def rows(self) -> list[int]:
        """The rows in memory, whether it would answer or not."""
        relation = self.cache.rows._laid.relation
        self.cache.rows.lay_waiting()
        found = self.cache.database.cursor().execute(f"select order_id from {relation} order by 1").fetchall()
        return [row[0] for row in found]

    def expected(self) -> list[int]:
        """The rows below the positions."""
        ends = self.cache.rows.positions
        return sorted(at + 100 * key.partition for key, end in ends.items() for at in range(end))


@pytest.fixture(params=[False, True], ids=["append", "upsert"])
def backlog(request: pytest.FixtureRequest, tmp_path: Path) -> Backlog:
    return Backlog(tmp_path, 20, upsert=request.param)


def test_a_commit_far_ahead_moves_the_stream(backlog: Backlog) -> None:
    backlog.cache.step()
    backlog.cache.step()
    assert backlog.rows() == [0, 1, 2, 3] and backlog.stream.moves == 0
    backlog.commit(10, 8)
    backlog.cache.step()
    assert backlog.rows() == backlog.expected() and backlog.stream.moves == 1
    assert backlog.stream.positions == backlog.cache.rows.positions == {KEY: 10, OTHER: 8}
    backlog.cache.step()
    assert backlog.rows() == backlog.expected() and backlog.cache.rows.positions == {KEY: 12, OTHER: 8}


def test_a_commit_behind_the_stream_moves_nothing(backlog: Backlog) -> None:
    for _ in range(3):
        backlog.cache.step()
    backlog.commit(3, 0)
    backlog.cache.step()
    assert backlog.stream.moves == 0 and backlog.cache.rows.positions == {KEY: 8}
    assert backlog.rows() == backlog.expected()


def test_a_commit_that_is_ahead_in_one_partition_and_behind_in_the_other(backlog: Backlog) -> None:
    for _ in range(3):
        backlog.cache.step()
    backlog.commit(5, 9)
    backlog.cache.step()
    assert backlog.rows() == backlog.expected()
    assert backlog.stream.positions == backlog.cache.rows.positions == {KEY: 8, OTHER: 9}


def test_messages_polled_before_a_commit_was_followed_are_dropped(
    backlog: Backlog, monkeypatch: pytest.MonkeyPatch
) -> None:
    backlog.cache.step()
    poll = backlog.stream.poll

    def poll_and_commit(wait_s: float) -> Polled:
        polled = poll(wait_s)
        backlog.commit(3, 1)
        return polled

    monkeypatch.setattr(backlog.stream, "poll", poll_and_commit)
    backlog.cache.step()
    assert backlog.rows() == backlog.expected() and backlog.cache.rows.positions == {KEY: 4, OTHER: 1}


def test_a_commit_while_the_stream_moves_leaves_no_gap(backlog: Backlog, monkeypatch: pytest.MonkeyPatch) -> None:
    backlog.cache.step()
    move_to = backlog.stream.move_to

    def commit_and_move(positions: Any) -> None:
        backlog.commit(12, 3)
        move_to(positions)

    monkeypatch.setattr(backlog.stream, "move_to", commit_and_move)
    backlog.commit(10, 3)
    for _ in range(3):
        backlog.cache.step()
        assert backlog.rows() == backlog.expected()
    assert backlog.cache.rows.positions[KEY] >= 12


def test_a_stale_message_is_not_taken_twice(backlog: Backlog, monkeypatch: pytest.MonkeyPatch) -> None:
    backlog.cache.step()
    backlog.commit(10, 0)
    backlog.cache.step()
    polled = Polled([message(4), message(10)], {KEY: 11, OTHER: 0}, None, {KEY: 10, OTHER: 0})
    monkeypatch.setattr(backlog.stream, "poll", lambda wait_s: polled)
    backlog.cache.step()
    assert backlog.rows() == backlog.expected() == list(range(11))


def test_a_gap_in_the_stream_is_an_error_and_no_loss(backlog: Backlog) -> None:
    """A mistake in moving the stream: the rows are built from the files, and the stream is read again."""
    backlog.cache.step()
    backlog.stream.positions = {KEY: 9, OTHER: 0}
    with pytest.raises(StreamError, match="left out messages"):
        backlog.cache.step()
    backlog.follower.start()
    backlog.cache.step()
    assert backlog.rows() == backlog.expected() == [0, 1]


def test_a_gap_is_found_below_the_offsets_of_a_pause_only(tmp_path: Path) -> None:
    """Beyond them the stream is read and dropped."""
    backlog = Backlog(tmp_path, 20)
    backlog.cache.rows.table = replace(backlog.cache.opened, pause_offsets={KEY.place: 3, OTHER.place: 0})
    for _ in range(5):
        backlog.cache.step()
    assert backlog.rows() == backlog.expected() == [0, 1, 2]


def test_readers_of_a_moved_stream_see_one_revision(backlog: Backlog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows and positions of a commit that overtakes the stream appear together."""
    backlog.cache.step()
    seen: list[int] = []
    merge = CachedRows._merge

    def look(rows: CachedRows) -> int:
        assert rows.current is not None
        seen.append(sum(rows.current.revision.tail.values()))
        return merge(rows)

    monkeypatch.setattr(CachedRows, "_merge", look)
    backlog.commit(10, 8)
    backlog.cache.step()
    assert seen == [2] and sum(backlog.cache.rows.current.revision.tail.values()) == 18  # type: ignore[union-attr]


def test_behind_without_trust_memory_answers_too(backlog: Backlog) -> None:
    """The files would show less than it holds."""
    backlog.follower.mode.decoded(1000, 1000.0)
    counts = []
    for _ in range(20):
        backlog.cache.step()
        counts.append(backlog.count())
        limit = backlog.cache.answers.tail_limit("orders")
        assert limit is not None and limit.shown == backlog.cache.rows.positions
    assert counts == list(range(2, 42, 2)) and not backlog.follower.mode.is_awaiting
    assert backlog.follower.fresh_ms > 0, "the end was reached"


def test_behind_without_trust_memory_answers_once_it_holds_what_was_shown(backlog: Backlog) -> None:
    backlog.follower.mode.decoded(1000, 1000.0)
    backlog.cache.answers.note(backlog.cache.opened, {KEY: 5})
    counts = []
    for _ in range(4):
        backlog.cache.step()
        counts.append(backlog.count())
    assert counts == [None, None, 6, 8]


def test_nobody_waits_for_offsets_whose_decoding_takes_longer(backlog: Backlog) -> None:
    backlog.follower.mode.decoded(1000, 1000.0)
    backlog.cache.step()
    table = CachedTable(backlog.cache.opened, 1, backlog.follower, tuning=CacheTuning(await_fresh_s_max=10.0))
    started = time.monotonic()
    assert table.meet() == 0
    backlog.cache.answers.note(backlog.cache.opened, {KEY: 20})
    assert table.meet() is None, "the files answer"
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("kind", ["start", "replay"])
def test_only_ingestion_is_measured(backlog: Backlog, kind: str) -> None:
    """The offsets from which a connector starts were never ingested, so they say nothing of its speed."""
    backlog.cache.step()
    rows = [stored(at, key) for key in (KEY, OTHER) for at in range(20)] if kind == "replay" else []
    backlog.halves.commit_realtime(rows, kind, offsets={KEY: 20, OTHER: 20})
    backlog.follower.mode.decoded(1000, 1000.0)
    backlog.cache.step()
    assert backlog.follower.offsets_from["files"] == 0 and not backlog.follower.mode._is_trusted
    assert not backlog.follower.mode._has_committed


def test_commits_that_are_followed_in_one_step_count_together(backlog: Backlog) -> None:
    backlog.cache.step()
    backlog.commit(3, 0)
    backlog.halves.commit_realtime([], "seal")
    backlog.commit(5, 9)
    backlog.cache.step()
    assert backlog.follower.offsets_from["files"] == 12 and backlog.follower.mode._is_trusted


@pytest.fixture
def pipeline() -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands for the JVM of a pipeline."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


@pytest.mark.process
def test_the_first_commit_of_a_running_ingestion_is_awaited(
    backlog: Backlog, pipeline: subprocess.Popen[bytes]
) -> None:
    mode = backlog.follower.mode
    mode.decoded(1000, 1000.0)
    backlog.cache.step()
    assert not mode.is_awaiting, "nobody holds the lock"
    lock = backlog.halves.layout.lock(Half.REALTIME)
    with half_lock(lock, jvm_pid=None, timeout_s=5.0, waiting=lambda _: None):
        backlog.cache.step()
        assert not mode.is_awaiting, "no batch is written without a JVM"
    with half_lock(lock, jvm_pid=pipeline.pid, timeout_s=5.0, waiting=lambda _: None):
        backlog.cache.step()
        assert mode.is_awaiting and backlog.count() == 6
        assert 9.0 < mode.status(time.monotonic()).left_s <= 10.0
        backlog.commit(20, 19)
    backlog.cache.step()
    assert backlog.count() == 39 and not mode.is_awaiting


@pytest.mark.process
def test_an_ingestion_that_died_in_its_batch_is_not_awaited(
    backlog: Backlog, pipeline: subprocess.Popen[bytes]
) -> None:
    backlog.follower.mode.decoded(1000, 1000.0)
    backlog.cache.step()
    lock = backlog.halves.layout.lock(Half.REALTIME)
    with pytest.raises(KeyboardInterrupt), half_lock(lock, jvm_pid=pipeline.pid, timeout_s=5.0, waiting=lambda _: None):
        raise KeyboardInterrupt  # the holder is written down still
    assert backlog.follower._is_ingested()
    pipeline.kill()
    pipeline.wait()
    backlog.cache.step()
    assert not backlog.follower.mode.is_awaiting


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


def test_behind_a_backlog_memory_is_as_fresh_as_its_commits(suspended: Backlog) -> None:
    suspended.commit(6, 3)
    suspended.halves.commit_realtime([], complete_ms=NOW_MS - 4000)
    suspended.cache.step()
    assert suspended.follower.fresh_ms == NOW_MS - 4000
    suspended.follower.start()
    suspended.cache.step()
    assert suspended.follower.fresh_ms in (None, NOW_MS - 4000)


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


def test_a_move_of_rows_that_memory_has_not_read_is_seen_once(suspended: Backlog) -> None:
    """OFFLINE is followed first: its boundary hides the commit's rows, and its files bring them."""
    suspended.commit(12, 9)
    moved = [stored(at, key) for key, end in ((KEY, 12), (OTHER, 9)) for at in range(end)]
    boundary = Boundary(INFINITE, {KEY: 12, OTHER: 9})
    suspended.halves.commit_offline([replace(row, segment="orders_0") for row in moved], boundary)
    suspended.cache.step()
    assert suspended.rows() == suspended.expected() and suspended.count() == 21


def test_a_pause_below_the_end_lets_the_stream_go_on(suspended: Backlog) -> None:
    suspended.cache.rows.table = replace(suspended.cache.opened, pause_offsets={KEY.place: 6, OTHER.place: 0})
    suspended.commit(6, 0)
    suspended.cache.step()
    assert not suspended.follower.mode.is_awaiting and suspended.rows() == [0, 1, 2, 3, 4, 5]


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
