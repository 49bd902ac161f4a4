"""The tables that a server keeps in memory. A thread follows each table from the first statement that names it."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from itertools import count
from pathlib import Path
from typing import Protocol

from hybrid.clock import wall_clock_ms
from hybrid.errors import HybridError
from hybrid.kafka.broker_clients import BrokerClients
from hybrid.query.cache.cached_rows import CachedRows
from hybrid.query.cache.database import CacheDatabase, is_out_of_memory
from hybrid.query.cache.follower import Follower, OpenStream
from hybrid.query.cache.stream import KafkaStream, Stream
from hybrid.query.cache.tuning import DEFAULT_TUNING, CacheTuning
from hybrid.query.query_table import QueryTable, TableSource
from hybrid.runtime.backoff import Backoff
from hybrid.table.state import RealtimeState

_LOG = logging.getLogger(__name__)
# Without a stream commits are looked for so often: while statements ask, and when nobody has asked for a while. A
# statement that finds a commit wakes the follower.
_LOOK_S, _IDLE_LOOK_S, _ASKED_S = 0.02, 0.5, 2.0
_IDLE_S = 1800.0
# A table that did not fit is not retried at once: filling the memory takes a core.
_NO_ROOM_S = 600.0
_QUIET_S = 0.1


class Stamped(TableSource, Protocol):
    """Tables whose definitions can be compared without reading them."""

    def stamp(self, name: str) -> Hashable | None:
        """A value that differs whenever the definition of a table does; None when there is no such table."""


class CachedTable(threading.Thread):
    """One table and the thread that follows it."""

    def __init__(
        self,
        table: QueryTable,
        stamp: Hashable,
        follower: Follower,
        stamp_now: Callable[[], Hashable | None] | None = None,
        tuning: CacheTuning = DEFAULT_TUNING,
    ) -> None:
        super().__init__(name=f"follow-{table.spec.name}", daemon=True)
        self.table, self.stamp = table, stamp
        self.follower, self._stamp_now = follower, stamp_now
        self._backoff_s, self._await_fresh_s_max = tuning.backoff_s, tuning.await_fresh_s_max
        self.stop = threading.Event()
        self.used_at = time.monotonic()

    def meet(self, until: float = math.inf) -> int | None:
        """Waits until the rows are fresh enough for a statement, at most `until` (monotonic).

        A statement after a pause sees all that was acknowledged before it. People and scripts write and then ask: for
        them Kafka is asked for its end offsets, which takes some milliseconds.
        Where statements follow each other, as a dashboard's do, rows are as late as the stream delivers them.
        Returns the instant up to which everything is in the rows, epoch ms; None: the files must answer. Under heavy
        load that instant is long ago. Nobody waits for the end of the stream then, but committed rows are included.
        """
        until = min(until, time.monotonic() + self._await_fresh_s_max)
        if self._is_quiet and not self.follower.await_end(_left_s(until)):
            return None
        self.used_at = time.monotonic()
        is_there = self.follower.await_noted(_left_s(until)) and self.follower.await_commits(_left_s(until))
        return self.follower.fresh_ms if is_there else None

    def met(self) -> int | None:
        """The same as `meet` without waiting; None where it would have to wait."""
        if self._is_quiet or not self.follower.is_met:
            return None
        self.used_at = time.monotonic()
        return self.follower.fresh_ms

    @property
    def _is_quiet(self) -> bool:
        """Whether no statement has arrived for a while, so that Kafka has to be asked for its end offsets."""
        return self.table.spec.stream is not None and time.monotonic() - self.used_at > _QUIET_S

    def end(self) -> None:
        """Asks the thread to end."""
        self.stop.set()
        self.follower.wake()

    def run(self) -> None:
        """The thread's work. Once it has ended, another thread takes over the table."""
        try:
            self._follow()
        finally:
            self.stop.set()
            self.follower.close()

    def _follow(self) -> None:
        """Follows the table, and restarts when it cannot continue."""
        backoff = Backoff(*self._backoff_s)
        while not self._is_over():
            try:
                started = time.monotonic()
                self.follower.start()
                took_s = time.monotonic() - started
                _LOG.info("Table '%s' is in memory after %.1f s", self.table.spec.name, took_s)
                backoff.reset()
                while not self._is_over() and self.follower.step():
                    if not self.follower.has_stream:
                        is_asked = time.monotonic() - self.used_at < _ASKED_S
                        self.follower.rest(_LOOK_S if is_asked else _IDLE_LOOK_S)
            except HybridError as error:
                if self._is_dropped():
                    return
                _LOG.warning("Table '%s' is answered from its files: %s", self.table.spec.name, error)
                self._pause(backoff.next_s())
            except Exception as error:  # whatever the error, the files answer meanwhile
                if self._is_dropped():
                    return
                # If the table was built before, a statement is taking the memory for a while.
                if is_out_of_memory(error) and self.follower.rows.current is None:
                    _LOG.warning("Table '%s' does not fit into cache_bytes: its files answer", self.table.spec.name)
                    self._pause(_NO_ROOM_S)
                else:
                    _LOG.exception("Table '%s' is answered from its files", self.table.spec.name)
                    self._pause(backoff.next_s())

    def _is_dropped(self) -> bool:
        """Whether the table was dropped: then nobody asks for it, and missing files are no error."""
        if self._stamp_now is None or self._stamp_now() is not None:
            return False
        _LOG.info("Table '%s' was dropped and is no longer in memory", self.table.spec.name)
        self.follower.lose(forget=True)
        return True

    def _pause(self, wait_s: float) -> None:
        self.follower.lose(forget=True)
        self.stop.wait(wait_s)

    def _is_over(self) -> bool:
        return self.stop.is_set() or time.monotonic() - self.used_at > _IDLE_S


class Cache:
    """The cached tables of a process, whose files are below `folder`. `bytes_max` and `spill` as in `CacheDatabase`."""

    def __init__(
        self,
        source: Stamped,
        folder: Path,
        *,
        bytes_max: int | None = None,
        spill: Path | None = None,
        open_stream: OpenStream | None = None,
        tuning: CacheTuning = DEFAULT_TUNING,
    ) -> None:
        self.source, self.tuning = source, tuning
        self.database = CacheDatabase(folder, bytes_max, spill)
        self._brokers = BrokerClients()
        self._open_stream = open_stream or self._open_kafka
        self._lock = threading.Lock()
        self._tables: dict[str, CachedTable] = {}
        self._started: list[CachedTable] = []
        self._names = count()

    def table(self, name: str) -> CachedTable | None:
        """A followed table; following starts now if it had not. None when it does not exist or cannot be cached."""
        stamp = self.source.stamp(name)
        return self._as_of(name, stamp) or self._follow(name, stamp)

    def current(self, name: str) -> CachedTable | None:
        """A table if it is followed under its present definition. Opens nothing."""
        return self._as_of(name, self.source.stamp(name))

    def if_followed(self, name: str) -> CachedTable | None:
        """A table if it is followed."""
        return self._tables.get(name)

    def followed(self) -> Mapping[str, CachedTable]:
        """The tables that are followed, by name."""
        with self._lock:
            return {name: table for name, table in self._tables.items() if not table.stop.is_set()}

    def follow_all(self) -> None:
        """Starts to follow every table, so that the first statements need not wait."""
        for name in self.source.names():
            try:
                self.table(name)
            except (HybridError, OSError) as error:
                _LOG.warning("Table '%s' cannot be followed: %s", name, error)

    def close(self) -> None:
        """Ends all threads and frees the memory."""
        for thread in self._started:
            thread.end()
        for thread in self._started:
            thread.join()
        self.database.close()

    def _open_kafka(self, table: QueryTable, state: RealtimeState) -> Stream:
        assert table.spec.stream is not None
        return KafkaStream(table.spec, state, table.brokers or table.spec.stream.brokers, self._brokers)

    def _as_of(self, name: str, stamp: Hashable | None) -> CachedTable | None:
        table = self._tables.get(name)
        return None if table is None or table.stamp != stamp or table.stop.is_set() else table

    def _follow(self, name: str, stamp: Hashable | None) -> CachedTable | None:
        with self._lock:
            if (current := self._as_of(name, stamp)) is not None:
                return current
            previous = self._tables.get(name)
            if previous is not None:
                previous.end()
            table = self.source.open(name) if stamp is not None else None
            if stamp is None or table is None or table.spec.nets_deletes:
                self._tables.pop(name, None)
                return None  # where rows are net of deletes, which ones remain is counted over the files
            rows = CachedRows(self.database, table, f"{next(self._names)}", self.tuning)
            follower = Follower(rows, self._open_stream, wall_clock_ms)
            followed = CachedTable(table, stamp, follower, lambda: self.source.stamp(name), self.tuning)
            self._tables[name] = followed
            if previous is not None and previous.table.layout == table.layout:
                follower.inherit(previous.follower)  # its definition has changed, or nobody had asked for long
            self._started = [thread for thread in self._started if thread.is_alive()] + [followed]
            followed.start()
            return followed


def _left_s(until: float) -> float:
    return max(0.0, until - time.monotonic())
