"""A cache that is behind its stream takes rows from commits and from the stream: each row once, whichever is first."""

from __future__ import annotations

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
from tests.query.backlogs import OTHER, Backlog, message, stored
from tests.query.halves import KEY


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_commit_behind_the_stream_moves_nothing(backlog: Backlog) -> None:
    for _ in range(3):
        backlog.cache.step()
    backlog.commit(3, 0)
    backlog.cache.step()
    assert backlog.stream.moves == 0 and backlog.cache.rows.positions == {KEY: 8}
    assert backlog.rows() == backlog.expected()


@pytest.mark.slow
def test_a_commit_that_is_ahead_in_one_partition_and_behind_in_the_other(backlog: Backlog) -> None:
    for _ in range(3):
        backlog.cache.step()
    backlog.commit(5, 9)
    backlog.cache.step()
    assert backlog.rows() == backlog.expected()
    assert backlog.stream.positions == backlog.cache.rows.positions == {KEY: 8, OTHER: 9}


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_stale_message_is_not_taken_twice(backlog: Backlog, monkeypatch: pytest.MonkeyPatch) -> None:
    backlog.cache.step()
    backlog.commit(10, 0)
    backlog.cache.step()
    polled = Polled([message(4), message(10)], {KEY: 11, OTHER: 0}, None, {KEY: 10, OTHER: 0})
    monkeypatch.setattr(backlog.stream, "poll", lambda wait_s: polled)
    backlog.cache.step()
    assert backlog.rows() == backlog.expected() == list(range(11))


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
