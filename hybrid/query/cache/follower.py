"""Keeps one table's cached rows as new as its logs and its stream. One step takes in what both have got since."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from hybrid.config.table_config import Half
from hybrid.errors import StreamError
from hybrid.lake.layout import TableLayout
from hybrid.lake.lock import last_holder
from hybrid.lake.log import open_half
from hybrid.lake.log_entries import Commit, has_entry, is_followed, read_commit
from hybrid.query.cache.cached_rows import CachedRows
from hybrid.query.cache.end_samples import EndSamples, offsets_beyond
from hybrid.query.cache.moved_rows import read_version
from hybrid.query.cache.stream import Polled, Stream
from hybrid.query.cache.tail_mode import TailMode, TailStatus
from hybrid.query.query_table import QueryTable
from hybrid.query.revision import PinnedHalves, pin_halves
from hybrid.query.tail import TailLimit
from hybrid.query.tailrows import tail_decoder, tail_rows
from hybrid.table.boundary import Offsets, PartitionKey, current_keys, read_places
from hybrid.table.state import PURGE, RESET, RealtimeState

if TYPE_CHECKING:
    from hybrid.records.decode import Decoder

_LOG = logging.getLogger(__name__)
_LOGS_S = 1.0
# How often a statement checks whether the write buffer has been flushed for it.
_TURN_S = 0.01
_INGEST = "ingest"
# Commits of these kinds bring only rows of the stream, so their offsets say what they bring.
_OF_STREAM = frozenset({_INGEST, "seal"})
OpenStream = Callable[[QueryTable, RealtimeState], Stream]


class StreamStatus(NamedTuple):
    """How a table's stream is read, and the offsets taken in so far, by where their rows came from.

    `seen_ms` is the instant up to which everything is in the rows, epoch ms; 0 when unknown.
    """

    mode: TailStatus
    offsets_from: Mapping[str, int]
    seen_ms: int = 0


class Follower:
    """Follows one table. `open_stream` opens its stream at a state's offsets; `now_ms` names new segments."""

    def __init__(self, rows: CachedRows, open_stream: OpenStream, now_ms: Callable[[], int]) -> None:
        self.rows = rows
        self._layout: TableLayout = rows.table.layout
        # Each statement checks both logs, and making a path takes longer than the check.
        self._offline, self._realtime = (self._layout.half(half) for half in (Half.OFFLINE, Half.REALTIME))
        self._lock = self._layout.lock(Half.REALTIME)
        self._open_stream, self._now_ms = open_stream, now_ms
        self._stream: Stream | None = None
        self._seen_at, self._seen_ms = 0.0, 0
        self._stepped_at = 0.0
        self._stepped, self._woken = threading.Condition(), threading.Event()
        self._noted: Mapping[PartitionKey, tuple[int, float]] = {}
        # Whether answers from memory may have shown the rows of this build.
        self._is_shown = False
        self._is_following = True
        self._table_id: str | None = None
        self.mode = TailMode(rows.tuning)
        self._samples = EndSamples()
        # Offsets taken in, by where their rows came from.
        self.offsets_from = {"stream": 0, "files": 0}
        self._fresh_s, self._step_s_max = rows.tuning.fresh_s, rows.tuning.step_s_max
        # How often the rows were invalidated: freshness that was awaited before does not hold any more.
        self.losses = 0
        self._logs_checked_at = 0.0

    # Readers

    def await_end(self, timeout_s: float) -> bool:
        """Waits until the rows hold all that the stream holds now; False when Kafka does not say what that is.

        Returns at once where they are not fresh anyway, or leave the rest to commits.
        """
        stream = self._stream
        if stream is None or not self.is_fresh or self.mode.is_awaiting:
            return True
        try:
            ends = stream.ends()
        except StreamError:
            return False
        with self._stepped:
            shown = self.rows.table.shown(ends)
            self._stepped.wait_for(lambda: self.mode.is_awaiting or self._is_past(shown), timeout_s)
        return True

    def note(self, shown: Mapping[PartitionKey, int]) -> None:
        """Records the offsets up to which an answer from the files has shown the stream: none may show less later."""
        now, shown = time.monotonic(), self.rows.table.shown(shown)
        with self._stepped:
            more = {key: (end, now) for key, end in shown.items() if end > self._noted.get(key, (0, now))[0]}
            self._noted = {**self._noted, **more}

    def await_noted(self, timeout_s: float) -> bool:
        """Waits until the rows hold the offsets recorded by `note`; False when they do not.

        It does not wait where the files answer anyway, or where decoding up to them would take longer.
        """
        noted = self._noted
        if not noted:  # nearly always: each statement asks
            return True
        if self.mode.decoding_s(offsets_beyond(self.rows.shown, self._noted_ends)) > timeout_s:
            timeout_s = 0.0
        with self._stepped:
            self._stepped.wait_for(
                lambda: self.fresh_ms is None or self.mode.is_awaiting or self._has_noted(noted), timeout_s
            )
            has_noted = self._has_noted(noted)
            if has_noted and self._noted is noted and self._is_shown:
                self._noted = {}
            return has_noted

    @property
    def served(self) -> Offsets:
        """The offsets up to which answers may have shown the stream: no later answer may show less."""
        with self._stepped:  # the noted offsets are dropped when the rows have reached them
            shown = self.rows.shown if self._is_shown else {}
            noted = self._noted_ends
        return {**shown, **{key: max(end, shown.get(key, 0)) for key, end in noted.items()}}

    @property
    def _noted_ends(self) -> Offsets:
        return {key: end for key, (end, _) in self._noted.items()}

    def _has_noted(self, noted: Mapping[PartitionKey, tuple[int, float]]) -> bool:
        """Whether the rows hold all these offsets, or the stream no longer has them."""
        return all(
            self.rows.shown.get(key, 0) >= end or self._seen_at > at + self.rows.tuning.unknown_partition_s
            for key, (end, at) in noted.items()
        )

    def _is_past(self, ends: Mapping[PartitionKey, int]) -> bool:
        return all(self.rows.shown.get(key, 0) >= end for key, end in ends.items())

    def await_commits(self, timeout_s: float) -> bool:
        """Waits until readers see all that is committed by now; returns whether they do.

        A commit of ingestion needs no wait where the stream has delivered its rows before. OFFLINE commits are awaited
        only under heavy load, when the files would answer late.
        """
        if self._has_commits():  # nearly always: each statement asks
            return True
        with self._stepped:
            self._stepped.wait_for(lambda: self.fresh_ms is None or self._has_commits(), timeout_s)
        return self._has_commits()

    def await_laid(self, timeout_s: float) -> None:
        """Requests a flush of the write buffer and awaits it, or the invalidation of all rows.

        For a while afterwards rows are not buffered.
        """
        self.rows.waiting.lay_soon()
        losses, until = self.losses, time.monotonic() + timeout_s
        with self._stepped:
            # In short waits: the flush happens early in a step, and the rest of the step may take long.
            while self.rows.is_waiting and self.losses == losses and (left_s := until - time.monotonic()) > 0:
                self._stepped.wait(min(left_s, _TURN_S))

    @property
    def is_met(self) -> bool:
        """Whether no wait is needed: no recorded offsets are pending, and readers see all commits."""
        return not self._noted and self._has_commits()

    def _has_commits(self) -> bool:
        served = self.rows.current  # what readers see: not yet a commit that is being applied
        if served is None:
            return False
        if not self.is_fresh and not self.is_newest(served.revision.offline):
            return False
        version = served.revision.realtime
        if version is None or not is_followed(self._realtime, version):
            return True
        self.wake()
        return self._is_delivered(version + 1, served.revision.tail)

    def _is_delivered(self, version: int, positions: Offsets) -> bool:
        """Whether all commits to REALTIME from this one on bring only rows of the stream below these positions."""
        while (commit := read_commit(self._realtime, version)) is not None:
            if not _brings_only(commit, positions):
                return False
            version += 1
        return True

    def _holds_moved(self, commit: Commit, realtime: int) -> bool:
        """Whether memory, at this version of REALTIME, has all rows that a move read there; False for other commits."""
        read, positions = read_version(commit), self.rows.positions
        if read is None:
            return False
        since = (read_commit(self._realtime, version) for version in range(read + 1, realtime + 1))
        return all(one is not None and _brings_only(one, positions) for one in since) and self._is_delivered(
            realtime + 1, positions
        )

    @property
    def is_fresh(self) -> bool:
        """Whether all that the stream held a moment ago is in the rows."""
        return time.monotonic() - self._seen_at < self._fresh_s

    @property
    def fresh_ms(self) -> int | None:
        """The instant up to which everything is in the rows, epoch ms, 0 when unknown; None: the files must answer.

        Rows answer once they have held all of the stream, or more than the files would show of it.
        """
        is_behind = self._is_shown and time.monotonic() - self._stepped_at < self._step_s_max
        return self._seen_ms if self.is_fresh or is_behind else None

    @property
    def tail_limit(self) -> TailLimit | None:
        """How much of the tail a statement over files reads: not less than any answer has shown.

        None where nothing follows the table now: then only the files can show its tail.
        """
        if not self._is_following:
            return None
        newest, has_ends = self._samples.newest, self._stream is not None
        recent = newest.ends if has_ends and time.monotonic() - newest.at < self._fresh_s else None
        return TailLimit(self.mode.files_limit, self.served, self.rows.table, recent)

    @property
    def has_stream(self) -> bool:
        """Whether a stream is followed, whose rows wake the follower."""
        return self._stream is not None

    @property
    def stream_status(self) -> StreamStatus | None:
        """How the stream is read; None where none is followed."""
        if self._stream is None:
            return None
        return StreamStatus(self.mode.status(time.monotonic()), self.offsets_from, self._seen_ms)

    def is_newest(self, offline: int | None) -> bool:
        """Whether no commit to OFFLINE follows version `offline`. Costs one file system call; wakes the writer."""
        if offline is None or not is_followed(self._offline, offline):
            return True
        self.wake()
        return False

    def wake(self) -> None:
        """Ends the wait between two steps: there is a commit, or the follower is to end. Any thread may call it."""
        self._woken.set()
        stream = self._stream
        if stream is not None:
            stream.wake()

    # The writer

    def start(self) -> None:
        """Builds the rows from the files and begins to follow."""
        self.lose()
        self._is_following = True
        self.mode.restarts()
        self._samples = EndSamples()
        halves = pin_halves(self.rows.table.spec, self._layout)
        self._forget_other_tables(halves)
        self._forget_unread(halves)
        stream = self.rows.table.spec.stream
        if halves.realtime is not None and stream is not None and halves.realtime.realtime.reads(stream):
            self._stream = self._open_stream(self.rows.table, halves.realtime.realtime)
        self.rows.build(halves)

    def inherit(self, previous: Follower) -> None:
        """Takes over the offsets that answers of a previous follower of the table may have shown."""
        self.note(previous.served)
        self._table_id = previous._table_id

    def _forget_other_tables(self, halves: PinnedHalves) -> None:
        """Drops served offsets of a table that was dropped: another one may have its name and topic now."""
        table_id = halves.realtime.table_id if halves.realtime is not None else None
        with self._stepped:
            if self._table_id not in (None, table_id):
                self._noted = {}
            self._table_id = table_id

    def _forget_unread(self, halves: PinnedHalves) -> None:
        """Drops served offsets that no answer will reach any more.

        They are of earlier epochs, or of connectors, topics and partitions that are no longer read. What is committed
        of these is seen by its commits.
        """
        stream = self.rows.table.spec.stream
        committed = halves.realtime.realtime.offsets if halves.realtime is not None else {}
        with self._stepped:
            if stream is None:
                self._noted = {}
                return
            keys: set[PartitionKey] = set()
            for topic in stream.topics:
                numbers = {key.partition for key in self._noted if key.topic == topic}
                keys.update(current_keys(stream, read_places(stream, topic, numbers), committed).values())
            self._noted = {key: entry for key, entry in self._noted.items() if key in keys}

    def step(self) -> bool:
        """Takes in new commits and stream rows; False when `start` has to rebuild the rows."""
        if self._stream is not None:
            polled = self._stream.poll(self.rows.waiting.patience_s)
        else:
            polled = Polled(complete_at=time.monotonic())
        polled_at = time.monotonic()
        if not self._follow() or not self._has_its_stream():
            self.lose()
            return False
        if polled.messages or polled.positions:
            self._take(polled)
        if self.rows.waiting.is_due:
            self.rows.lay_waiting()
        self._see(polled)
        self._stepped_at = time.monotonic()
        with self._stepped:
            self._stepped.notify_all()
        self._steer(polled)
        self.rows.fold(may_begin=polled.is_complete)  # not while the stream is behind
        if rest_s := self.mode.rest_s(time.monotonic() - polled_at):
            time.sleep(rest_s)
        return True

    def rest(self, wait_s: float) -> None:
        """Waits between two steps, until `wake` is called: without a stream nothing else does."""
        self._woken.wait(wait_s)
        self._woken.clear()

    def _see(self, polled: Polled) -> None:
        """Notes the instant up to which everything is in the rows; the logs were read after it."""
        self._samples.add(polled.newest)
        seen_at = polled.complete_at
        if seen_at is None and self._is_shown:
            seen_at = self._samples.reached_at(self.rows.positions)
        if seen_at is not None and seen_at > self._seen_at:
            self._is_shown = True
            self._seen_at = seen_at
            self._seen_ms = self._now_ms() - round(1000 * (time.monotonic() - seen_at))
        if self._stream is not None:
            self._seen_ms = max(self._seen_ms, self.rows.realtime.complete_ms or 0)

    def _steer(self, polled: Polled) -> None:
        """Decides whether the stream is read on, left to commits, or moved behind those that are far ahead of it.

        At the end of a step all polled messages are taken, so none is lost.
        """
        stream, positions = self._stream, self.rows.positions
        if stream is None:
            return
        ends = self.rows.table.shown(polled.newest.ends)
        unread = offsets_beyond(positions, ends)
        has_noted = self._has_noted(self._noted)
        if has_noted and unread > self.mode.files_limit:
            self._is_shown = True  # a statement over files would show less than memory holds
        if self.mode.decide(time.monotonic(), unread, may_await=has_noted, is_ingested=self._is_ingested):
            if self.mode.is_awaiting:
                stream.suspend()
                self._is_shown = True
            else:
                stream.move_to(positions)
            _LOG.info("Table '%s': %s", self.rows.table.spec.name, self.mode.status(time.monotonic()).words)
        elif not self.mode.is_awaiting:
            # A few messages are dropped sooner than a new fetch would begin.
            ahead = offsets_beyond(polled.positions, {key: positions.get(key, 0) for key in ends})
            if ahead > self.rows.tuning.tail_offsets_min:
                stream.move_to(positions)

    def _is_ingested(self) -> bool:
        """Whether a process of this machine runs a batch now: it holds the half's lock, and its JVM works."""
        return {"python", "jvm"} <= {name for name, process in last_holder(self._lock).items() if process.is_alive()}

    def _has_its_stream(self) -> bool:
        """Whether the followed stream is the one of the rows. A connector's stream exists once it has started."""
        if self._stream is not None:
            return self._stream.is_of(self.rows.realtime)
        stream = self.rows.table.spec.stream
        return stream is None or not self.rows.realtime.reads(stream)

    def close(self) -> None:
        """Stops following and drops the rows."""
        self.lose()
        self._is_following = False
        self.rows.close()

    def lose(self, *, forget: bool = False) -> None:
        """Marks the rows stale until `start` rebuilds them; `forget` frees their memory too."""
        self.losses += 1
        self._seen_at, self._seen_ms = 0.0, 0
        with self._stepped:
            if self._is_shown:
                self.note(self.rows.shown)
                self._is_shown = False
            self._stepped.notify_all()
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        if forget:
            self._is_following = False
            self.rows.forget()

    @cached_property
    def _decoder(self) -> Decoder:
        return tail_decoder(self.rows.table.spec)

    def _take(self, polled: Polled) -> None:
        positions = self.rows.positions
        starts = self.rows.table.shown(polled.starts) if polled.messages else {}
        if any(at > positions.get(key, 0) for key, at in starts.items()):
            # It cannot happen; if it did, rows would be lost silently.
            raise StreamError(f"The stream of '{self.rows.table.spec.name}' has left out messages: it is read again.")
        # The commits that were just followed may have brought some of these already.
        read = self.rows.table.is_read
        new = [
            message
            for message in polled.messages
            if message.offset >= positions.get(message.key, 0) and read(message.key, message.offset)
        ]
        spec, state = self.rows.table.spec, self.rows.realtime
        started = time.monotonic()
        rows = tail_rows(self._decoder, spec, state, new, self._now_ms()) if new else None
        shown = self.rows.table.shown(polled.positions)
        ahead = {key: at for key, at in shown.items() if at > positions.get(key, 0)}
        if rows is not None or ahead:
            self.rows.take(rows, ahead)
        self.mode.decoded(len(new), time.monotonic() - started)
        self.offsets_from["stream"] += sum(at - positions.get(key, 0) for key, at in ahead.items())

    def _follow(self) -> bool:
        """Applies new commits; False when the rows must be rebuilt.

        OFFLINE first: a commit whose boundary covers rows of a REALTIME commit brings these rows itself.
        """
        offline, realtime = self.rows.versions
        if time.monotonic() - self._logs_checked_at > _LOGS_S:
            self._logs_checked_at = time.monotonic()
            if self._has_missed(Half.OFFLINE, offline) or self._has_missed(Half.REALTIME, realtime):
                return False
        while offline is not None and (commit := read_commit(self._offline, offline + 1)) is not None:
            if self._is_purge(commit):
                return False
            holds_realtime = realtime is not None and self._holds_moved(commit, realtime)
            if not self.rows.follow_offline(commit, holds_realtime=holds_realtime):
                return False
            offline = commit.version
        return realtime is None or not is_followed(self._realtime, realtime) or self._follow_realtime(realtime)

    def _follow_realtime(self, realtime: int) -> bool:
        """Applies the REALTIME commits after a version, and measures them."""
        advanced = overtaken = 0
        while (commit := read_commit(self._realtime, realtime + 1)) is not None:
            if self._is_purge(commit) or _is_reset(commit):
                return False
            before, positions = self.rows.realtime.offsets, self.rows.positions
            if not self.rows.follow_realtime(commit):
                return False
            if commit.state is not None and commit.state.act.kind == _INGEST:
                advanced += offsets_beyond(before, self._stream_offsets)
                overtaken += offsets_beyond(positions, self._stream_offsets)
            realtime = commit.version
        self.offsets_from["files"] += overtaken
        self.mode.committed(time.monotonic(), advanced, overtaken)
        return True

    @property
    def _stream_offsets(self) -> Offsets:
        """The committed offsets of the table's stream."""
        stream, offsets = self.rows.table.spec.stream, self.rows.realtime.offsets
        return {key: at for key, at in offsets.items() if stream is not None and key.connector == stream.connector}

    def _is_purge(self, commit: Commit) -> bool:
        """Whether a commit is a purge. Then the rows are dropped, for memory may still hold what was purged."""
        if commit.state is None or commit.state.act.kind != PURGE:
            return False
        self.rows.forget()
        return True

    def _has_missed(self, half: Half, version: int | None) -> bool:
        """Whether a log was cleaned or restored, so that commits after `version` may have been missed."""
        path = self._layout.half(half)
        return version is not None and not has_entry(path, version) and open_half(path).version != version


def _brings_only(commit: Commit, positions: Offsets) -> bool:
    """Whether a commit to REALTIME only brings rows of the stream, all of them below these positions."""
    state = commit.state
    if not isinstance(state, RealtimeState) or state.act.kind not in _OF_STREAM or commit.removed:
        return False
    return all(at <= positions.get(key, 0) for key, at in state.offsets.items())


def _is_reset(commit: Commit) -> bool:
    """Whether a commit resets the stream: rows that no commit has brought are dropped, and offsets start elsewhere."""
    return commit.state is not None and commit.state.act.kind == RESET
