"""A table whose stream is ahead of its cache, for tests of what the cache does about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hybrid.query.cache.tuning import CacheTuning
from hybrid.query.engine import QueryResult
from hybrid.query.execution import Limits
from hybrid.query.tail import Tail, TailMessage
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
