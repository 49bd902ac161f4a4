"""Keeps one table's rows in the cache as new as its logs and its stream. What it does between two looks is one step."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half
from hybrid.errors import StreamError
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import Commit, has_entry, is_followed, open_half, read_commit
from hybrid.query.cache.cached_rows import CachedRows
from hybrid.query.cache.stream import Polled, Stream
from hybrid.query.plan import QueryTable
from hybrid.query.revision import pin_halves
from hybrid.query.tailrows import tail_decoder, tail_rows
from hybrid.table.boundary import PartitionKey
from hybrid.table.state import PURGE, RESET, RealtimeState

if TYPE_CHECKING:
    from hybrid.records.decode import Decoder

# How old the moment is up to which everything is in the rows: milliseconds but under a flood of rows. Then statements
# say how old, for reading what is missing from Kafka for each of them would only hold the flood up, and last longer.
FRESH_S = 3.0
# A follower that takes its steps comes after the flood; one that has not for so long may never do.
_STEP_S_MAX = 10.0
_LOGS_S = 1.0
# A statement looks so often whether rows have been laid for it.
_TURN_S = 0.01
# How long a stream may not know of a partition that the files have read.
_KNOWN_S = 2.0
# What these commit the stream has brought before.
_OF_STREAM = frozenset({"ingest", "seal"})
OpenStream = Callable[[QueryTable, RealtimeState], Stream]


class Follower:
    """One table. `open_stream` follows its stream from a state's offsets on; `now_ms` names new segments."""

    def __init__(self, rows: CachedRows, open_stream: OpenStream, now_ms: Callable[[], int]) -> None:
        self.rows = rows
        self._layout: TableLayout = rows.table.layout
        # Each statement looks at both logs, and making a path takes longer than that.
        self._offline, self._realtime = (self._layout.half(half) for half in (Half.OFFLINE, Half.REALTIME))
        self._open_stream, self._now_ms = open_stream, now_ms
        self._stream: Stream | None = None
        self._seen_at, self._seen_ms = 0.0, 0
        self._stepped_at = 0.0
        self._stepped = threading.Condition()
        self._noted: Mapping[PartitionKey, tuple[int, float]] = {}
        # How often rows were lost: what was met before is not there any more.
        self.losses = 0
        self._logs_checked_at = 0.0

    # Readers

    def await_end(self, timeout_s: float) -> None:
        """Waits until the rows hold all that the stream holds now; not where they are not fresh anyway."""
        stream = self._stream
        if stream is None or not self.is_fresh:
            return
        try:
            ends = stream.ends()
        except StreamError:
            return  # the follower meets it too, and is not fresh any more then
        with self._stepped:
            shown = self.rows.table.shown(ends)
            self._stepped.wait_for(lambda: self._is_past(shown), timeout_s)

    def note(self, shown: Mapping[PartitionKey, int]) -> None:
        """An answer from the files has shown the stream up to these offsets: no later one may show less."""
        now, shown = time.monotonic(), self.rows.table.shown(shown)
        with self._stepped:
            more = {key: (end, now) for key, end in shown.items() if end > self._noted.get(key, (0, now))[0]}
            self._noted = {**self._noted, **more}

    def await_noted(self, timeout_s: float) -> bool:
        """Waits until the rows hold what was noted; False when they do not. Behind a flood nobody waits for it."""
        noted = self._noted
        if not noted:  # nearly always: each statement asks
            return True
        with self._stepped:
            self._stepped.wait_for(lambda: not self.is_fresh or self._has_noted(noted), timeout_s)
            is_there = self._has_noted(noted)
            if is_there and self._noted is noted:
                self._noted = {}
            return is_there or not self.is_fresh

    def _has_noted(self, noted: Mapping[PartitionKey, tuple[int, float]]) -> bool:
        """Whether all of it is in the rows, or was in a stream that does not hold it any more."""
        return all(
            self.rows.shown.get(key, 0) >= end or self._seen_at > at + _KNOWN_S for key, (end, at) in noted.items()
        )

    def _is_past(self, ends: Mapping[PartitionKey, int]) -> bool:
        return all(self.rows.shown.get(key, 0) >= end for key, end in ends.items())

    def await_commits(self, timeout_s: float) -> bool:
        """Waits until readers see all that is committed by now; whether they do.

        Not what ingestion commits while the rows are fresh: these the stream has brought. An OFFLINE commit is waited
        for behind a flood only, where the files would answer late.
        """
        if self._has_commits():  # nearly always: each statement asks
            return True
        with self._stepped:
            self._stepped.wait_for(lambda: self.fresh_ms is None or self._has_commits(), timeout_s)
        return self._has_commits()

    def await_laid(self, timeout_s: float) -> None:
        """Waits until no rows wait beside the relation, or all are lost; for a while none wait then."""
        self.rows.waiting.lay_soon()
        losses, until = self.losses, time.monotonic() + timeout_s
        with self._stepped:
            # In turns: rows are laid first in a step that then takes long.
            while self.rows.is_waiting and self.losses == losses and (left_s := until - time.monotonic()) > 0:
                self._stepped.wait(min(left_s, _TURN_S))

    @property
    def is_met(self) -> bool:
        """Whether nothing has to be waited for: the rows hold what was noted, and readers see what is committed."""
        return not self._noted and self._has_commits()

    def _has_commits(self) -> bool:
        served = self.rows.current  # what readers see, which a commit that is being taken in is not yet
        if served is None:
            return False
        if not self.is_fresh and not self.is_newest(served.revision.offline):
            return False
        version = served.revision.realtime
        if version is None or not is_followed(self._realtime, version):
            return True
        return self.is_fresh and self._is_ingestion(version + 1)

    def _is_ingestion(self, version: int) -> bool:
        """Whether all commits to REALTIME from this one on are ingestion's."""
        while (commit := read_commit(self._realtime, version)) is not None:
            if commit.state is None or commit.state.act.kind not in _OF_STREAM:
                return False
            version += 1
        return True

    @property
    def is_fresh(self) -> bool:
        """Whether all that the stream held a moment ago is in the rows."""
        return time.monotonic() - self._seen_at < FRESH_S

    @property
    def fresh_ms(self) -> int | None:
        """An instant up to which everything is in the rows, epoch ms; None when nobody knows, or nobody follows."""
        is_behind = self._seen_at > 0 and time.monotonic() - self._stepped_at < _STEP_S_MAX
        return self._seen_ms if self.is_fresh or is_behind else None

    @property
    def has_stream(self) -> bool:
        """Whether rows of a stream wake it."""
        return self._stream is not None

    def is_newest(self, offline: int | None) -> bool:
        """Whether no commit to OFFLINE follows version `offline`. One look at the file system."""
        return offline is None or not is_followed(self._offline, offline)

    # The writer

    def start(self) -> None:
        """Builds the rows from the files and begins to follow."""
        self.lose()
        self._noted = {}  # they are fresh again when they hold all that the stream does
        halves = pin_halves(self.rows.table.spec, self._layout)
        stream = self.rows.table.spec.stream
        if halves.realtime is not None and stream is not None and halves.realtime.realtime.reads(stream):
            self._stream = self._open_stream(self.rows.table, halves.realtime.realtime)
        self.rows.build(halves)

    def step(self) -> bool:
        """Takes in what is new; False when the rows have to be built anew by `start`."""
        if self._stream is not None:
            polled = self._stream.poll(self.rows.waiting.patience_s)
        else:
            polled = Polled(complete_at=time.monotonic())
        if not self._follow() or not self._has_its_stream():
            self.lose()
            return False
        if polled.messages or polled.positions:
            self._take(polled)
        if self.rows.waiting.is_due:
            self.rows.lay_waiting()
        if polled.complete_at is not None:
            # What the stream held at that moment is in the rows now; the logs were followed further.
            self._seen_at = polled.complete_at
            self._seen_ms = self._now_ms() - round(1000 * (time.monotonic() - polled.complete_at))
        self._stepped_at = time.monotonic()
        with self._stepped:
            self._stepped.notify_all()
        self.rows.fold(may_begin=polled.complete_at is not None)  # not behind a flood
        return True

    def _has_its_stream(self) -> bool:
        """Whether the stream is the one that the rows are of; a connector's begins when it has started."""
        if self._stream is not None:
            return self._stream.is_of(self.rows.realtime)
        stream = self.rows.table.spec.stream
        return stream is None or not self.rows.realtime.reads(stream)

    def close(self) -> None:
        """Ends it; the rows are dropped."""
        self.lose()
        self.rows.close()

    def lose(self, *, forget: bool = False) -> None:
        """Stops to be fresh, until the next start; `forget` gives the rows' memory back too."""
        self.losses += 1
        self._seen_at = 0.0
        with self._stepped:
            self._stepped.notify_all()
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        if forget:
            self.rows.forget()

    @cached_property
    def _decoder(self) -> Decoder:
        return tail_decoder(self.rows.table.spec)

    def _take(self, polled: Polled) -> None:
        known = self.rows.positions
        # The commits that were just followed may have brought some of these already.
        read = self.rows.table.is_read
        new = [one for one in polled.messages if one.offset >= known.get(one.key, 0) and read(one.key, one.offset)]
        spec, state = self.rows.table.spec, self.rows.realtime
        found = tail_rows(self._decoder, spec, state, new, self._now_ms()) if new else None
        shown = self.rows.table.shown(polled.positions)
        ahead = {key: at for key, at in shown.items() if at > known.get(key, 0)}
        if found is not None or ahead:
            self.rows.take(found, ahead)

    def _follow(self) -> bool:
        """OFFLINE first: a boundary that covers rows of a REALTIME commit brings them itself."""
        offline, realtime = self.rows.versions
        if time.monotonic() - self._logs_checked_at > _LOGS_S:
            self._logs_checked_at = time.monotonic()
            if self._has_missed(Half.OFFLINE, offline) or self._has_missed(Half.REALTIME, realtime):
                return False
        while offline is not None and (commit := read_commit(self._offline, offline + 1)) is not None:
            if self._is_purge(commit):
                return False
            if not self.rows.follow_offline(commit):
                return False
            offline = commit.version
        while realtime is not None:
            commit = read_commit(self._realtime, realtime + 1)
            if commit is None:
                return True
            if self._is_purge(commit) or _is_reset(commit):
                return False
            if not self.rows.follow_realtime(commit):
                return False
            realtime = commit.version
        return True

    def _is_purge(self, commit: Commit) -> bool:
        """Whether rows were removed for good: then all is laid anew, for what went before may still lie in memory."""
        if commit.state is None or commit.state.act.kind != PURGE:
            return False
        self.rows.forget()
        return True

    def _has_missed(self, half: Half, version: int | None) -> bool:
        """Whether a log has been cleaned or put back, so that what follows `version` cannot be told from nothing."""
        path = self._layout.half(half)
        return version is not None and not has_entry(path, version) and open_half(path).version != version


def _is_reset(commit: Commit) -> bool:
    """Whether the stream is read elsewhere from then on: rows of it that no commit has brought are no rows any more."""
    return commit.state is not None and commit.state.act.kind == RESET
