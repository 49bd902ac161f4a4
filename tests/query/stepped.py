"""The serving cache without threads and Kafka: it takes a step before each statement, and its stream is a list."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hybrid.query.cache.background_rebuild import BackgroundRebuild
from hybrid.query.cache.cache_reader import CachedAnswers
from hybrid.query.cache.cached_rows import CachedRows
from hybrid.query.cache.database import CacheDatabase
from hybrid.query.cache.end_samples import EndOffsets
from hybrid.query.cache.follower import Follower
from hybrid.query.cache.stream import Polled
from hybrid.query.cache.tuning import DEFAULT_TUNING, CacheTuning
from hybrid.query.execution import Limits
from hybrid.query.query_table import QueryTable
from hybrid.query.result import QueryResult
from hybrid.query.tail import TailMessage
from hybrid.table.boundary import PartitionKey
from hybrid.table.state import RealtimeState
from tests.query.halves import Halves, ListTail

# What pays on large tables only is done on small ones too, and every statement runs without a transaction.
SMALL_TABLES = CacheTuning(
    enum_rows_min=1,
    rebuild_rows_min=5,
    latest_rows=3,
    latest_first_changes_min=1,
    optimistic_gap_share=math.inf,
    optimistic_s_max=math.inf,
)

# How long a fold and whoever looks at it wait for each other at most.
_READING_S = 5.0


class ListStream:
    """A stream that holds what a list tail holds. A poll returns at most `poll_max` messages."""

    def __init__(self, tail: ListTail, state: RealtimeState, poll_max: int | None = None) -> None:
        self.tail, self.poll_max = tail, poll_max
        self.positions: dict[PartitionKey, int] = dict(state.offsets)
        self.is_suspended = False
        self.moves = 0

    def poll(self, wait_s: float) -> Polled:
        starts, now = dict(self.positions), time.monotonic()
        new: list[TailMessage] = []
        if not self.is_suspended:
            for message in sorted(self.tail.messages, key=lambda one: (one.key, one.offset)):
                if message.offset >= self.positions.get(message.key, 0):
                    new.append(message)
        for message in new[: self.poll_max]:
            self.positions[message.key] = max(self.positions.get(message.key, 0), message.offset + 1)
        ends = self.ends()
        is_complete = not self.is_suspended and all(self.positions.get(key, 0) >= end for key, end in ends.items())
        newest = EndOffsets(now, ends)
        return Polled(new[: self.poll_max], dict(self.positions), now if is_complete else None, starts, newest)

    def ends(self) -> dict[PartitionKey, int]:
        ends = {key: 0 for key in self.positions}
        for message in self.tail.messages:
            ends[message.key] = max(ends.get(message.key, 0), message.offset + 1)
        return ends

    def move_to(self, positions: Mapping[PartitionKey, int]) -> None:
        self.positions = {key: max(at, self.positions.get(key, 0)) for key, at in positions.items()}
        self.is_suspended = False
        self.moves += 1

    def wake(self) -> None:
        return None

    def suspend(self) -> None:
        self.is_suspended = True

    def is_of(self, state: RealtimeState) -> bool:
        return True

    def close(self) -> None:
        return None


class PacedFold(BackgroundRebuild):
    """A fold that reads when it is looked at, and no sooner: each look is one reading, which has ended when it returns.

    So no look is left over that a later reading would take before the stream has more.
    """

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._turn, self._paused = threading.Condition(), False

    def is_alive(self) -> bool:
        self._await_pause()
        with self._turn:
            self._paused = False
            self._turn.notify_all()
        self._await_pause()
        return super().is_alive()

    def _await_pause(self) -> None:
        deadline = time.monotonic() + _READING_S
        while super().is_alive() and not self._paused and time.monotonic() < deadline:
            with self._turn:
                self._turn.wait(0.002)

    def _run(self, statement: str) -> Any:
        if statement.startswith("CREATE TEMP TABLE") and threading.current_thread() is self:
            with self._turn:
                self._paused = True
                self._turn.notify_all()
                self._turn.wait_for(lambda: not self._paused, timeout=_READING_S)
                self._paused = False
        return super()._run(statement)


@dataclass
class Followed:
    """What answers ask of a followed table."""

    table: QueryTable
    follower: Follower
    stop: threading.Event = field(default_factory=threading.Event)

    def meet(self, until: float) -> int | None:
        return self.follower.fresh_ms

    def met(self) -> int | None:
        return self.follower.fresh_ms if self.follower.is_met else None


@dataclass
class SteppedCache:
    """One table's cache. `built` counts how often it was built from the files. `waits`: few rows wait to be laid."""

    source: Halves
    now_ms: int
    tail: ListTail = field(default_factory=ListTail)
    built: int = 0
    bytes_max: int | None = None
    spill: Path | None = None
    waits: bool = True
    poll_max: int | None = None
    stream: ListStream | None = None
    tuning: CacheTuning = DEFAULT_TUNING

    def __post_init__(self) -> None:
        self.opened = self.source.open(self.source.spec.name)
        self.database = CacheDatabase(self.source.layout.root.parent, self.bytes_max, self.spill)
        self.rows = CachedRows(self.database, self.opened, "0", self.tuning)
        self.followed = Followed(self.opened, Follower(self.rows, self._open, lambda: self.now_ms))
        # A statement that needs all rows laid waits for the writer, which is its own thread here.
        self.followed.follower.await_laid = lambda timeout_s: self.rows.lay_waiting()  # type: ignore[method-assign]
        if not self.waits:
            self.rows.waiting.has_room = lambda rows: False  # type: ignore[method-assign]
        self.answers = CachedAnswers(self)  # type: ignore[arg-type]

    def _open(self, table: QueryTable, state: RealtimeState) -> ListStream:
        self.stream = ListStream(self.tail, state, self.poll_max)
        return self.stream

    def table(self, name: str) -> Any:
        assert name == self.source.spec.name
        return self.followed

    if_followed = current = table

    @property
    def rooms(self) -> list[str]:
        """The databases that generations of rows lie in."""
        select = "select database_name from duckdb_databases() where database_name like 'cache%'"
        return sorted(name for (name,) in self.database.cursor().execute(select).fetchall())

    def step(self) -> None:
        if not self.built or not self.followed.follower.step():
            self.built += 1
            self.followed.follower.start()
            assert self.followed.follower.step()

    def ask(self, sql: str) -> QueryResult | None:
        """The cache's answer after a step, or None when it has none."""
        self.step()
        return self.answers.answer(sql, self.now_ms, Limits(), lambda interrupt: None)
