"""A cache that is behind its stream takes rows from commits and from the stream: each row once, whichever is first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hybrid.errors import StreamError
from hybrid.query.cache.cached_rows import CachedRows
from hybrid.query.cache.stream import Polled
from hybrid.query.cache.tuning import CacheTuning
from hybrid.query.tail import TailMessage
from hybrid.table.boundary import PartitionKey
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
    from dataclasses import replace

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
