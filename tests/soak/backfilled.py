"""A table in many small buckets under a backfill: rows that go on arriving, readers, and what each answer must be.

Every bucket is laid with BASE_ROWS rows of amount 1; the backfill adds ADDED to each of them. Live row n has the amount
1 and lies in the bucket `bucket_of(n)`: one of three comes late, into a bucket that is corrected, and must stay as it
came. So counts and sums alone say which live rows an answer shows and which buckets are corrected, how often, and
whether wholly; and its revision says which of them must be.
"""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hybrid.config.table_config import Half
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.log_entries import newest_version
from hybrid.query.engine import QueryOptions, run
from hybrid.query.result import QueryResult
from hybrid.query.tail import TailMessage
from hybrid.replace.lineage import ReplacementEntry
from hybrid.table.plans import Plan
from tests.query.halves import KEY, Halves, ListTail, Row
from tests.query.stepped import SteppedCache
from tests.replace.backfill.lab import BUCKET, Lab, lab_spec, row

BASE_ROWS = 5
ADDED = 1000
UPDATE = f"amount = amount + {ADDED}"
# Where live rows begin; `Lab.lay` leaves all offsets below to OFFLINE.
FIRST = 1_000_000
FRESH_ROWS = 300  # of a bucket beyond those that are corrected
_SQL = "SELECT DATETRUNC('SECOND', ts), COUNT(*), SUM(amount) FROM orders GROUP BY DATETRUNC('SECOND', ts) LIMIT 100000"
_NOW_MS = 1_700_000_000_000


def filled(bench: CommitContext, folder: Path, buckets: int) -> Lab:
    """A table of so many buckets, all of them moved, a segment each."""
    lab = Lab.create(bench, folder, lab_spec())
    lab.halves.commit_realtime([], offsets={KEY: FIRST})
    base = [
        Row(one.values, one.time_ms, one.offset, segment=f"orders_{bucket}")
        for bucket in range(buckets)
        for number in range(BASE_ROWS)
        for one in [row(bucket * BASE_ROWS + number, bucket * BUCKET + number * 200)]
    ]
    boundary = lab.halves.offline.boundary.advance(buckets * BUCKET, {KEY: FIRST})
    lab.halves.commit_offline(base, boundary)
    return lab


def planned(lab: Lab, buckets: int) -> Plan:
    """A backfill of all of them, each a unit of its own."""
    plan = lab.plan(0, buckets * BUCKET, update=UPDATE)
    assert [len(unit.buckets) for unit in plan.units] == [1] * buckets
    return plan


def bucket_of(n: int, buckets: int) -> int:
    """The bucket of live row `n`."""
    return n * 7 % buckets if n % 3 == 0 else buckets + n // FRESH_ROWS


def live_row(n: int, buckets: int) -> Row:
    return row(FIRST + n, bucket_of(n, buckets) * BUCKET + n % BUCKET, offset=FIRST + n)


# What arrives


class Arrivals:
    """Live rows: in the stream at once (`sent`), and committed to REALTIME after a while."""

    def __init__(self, halves: Halves, buckets: int, pause_s: float) -> None:
        self.tail, self.committed = ListTail(), 0
        self._halves, self._buckets, self._pause_s = halves, buckets, pause_s

    @property
    def sent(self) -> int:
        return len(self.tail.messages)

    def go_on(self, stop: threading.Event) -> None:
        while not stop.wait(self._pause_s):
            for _ in range(3):
                self._send()
            if self.sent % 4 == 0:  # else the rows stay in the tail for now
                end = self.sent
                rows = [live_row(n, self._buckets) for n in range(self.committed, end)]
                self._halves.commit_realtime(rows, offsets={KEY: FIRST + end})
                self.committed = end

    def _send(self) -> None:
        live = live_row(self.sent, self._buckets)
        assert isinstance(self.tail.messages, list) and live.offset is not None
        self.tail.messages.append(TailMessage(KEY, live.offset, 0, json.dumps(dict(live.values)).encode()))


# What is asked


@dataclass(frozen=True)
class Answer:
    """What one answer says: its OFFLINE version, how many live rows it shows, and which buckets are corrected in it."""

    offline: int
    shown: int
    corrected: frozenset[int]
    source: str


def understood(result: QueryResult, buckets: int) -> Answer:
    """The answer, when it is one that a table could give at any moment: buckets whole, live rows a prefix."""
    (revision,) = result.revision.tables
    found = {int(start) // BUCKET: (count, total) for start, count, total in result.rows}
    shown = sum(count for count, _ in found.values()) - buckets * BASE_ROWS
    assert revision.offline is not None
    assert shown == revision.tail[KEY] - FIRST, f"{shown} live rows at {result.revision}"
    expected = Counter(bucket_of(n, buckets) for n in range(shown))
    expected.update(dict.fromkeys(range(buckets), BASE_ROWS))
    counts = {bucket: count for bucket, (count, _) in found.items()}
    assert counts == expected, f"{_difference(counts, expected)} at {result.revision}"
    added = {bucket: total - count for bucket, (count, total) in found.items()}
    corrected = frozenset(bucket for bucket, more in added.items() if more)
    torn = {bucket: added[bucket] for bucket in corrected if added[bucket] != BASE_ROWS * ADDED}
    assert not torn and all(bucket < buckets for bucket in corrected), f"corrected in part: {torn} at {result.revision}"
    return Answer(revision.offline, shown, corrected, result.source)


def _difference(counts: dict[int, int], expected: Counter[int]) -> str:
    wrong = {bucket for bucket in {*counts, *expected} if counts.get(bucket) != expected.get(bucket)}
    return "; ".join(f"bucket {one}: {counts.get(one)} rows, not {expected.get(one)}" for one in sorted(wrong)[:5])


@dataclass
class Reader:
    """Asks all the time: the files, or a cache of its own as a server keeps one. Holds each answer to the ones before.

    An answer shows all that had been sent and committed before it was asked for, and nothing that was not sent.
    """

    lab: Lab
    arrivals: Arrivals
    buckets: int
    cached: bool
    pause_s: float
    answers: list[Answer] = field(default_factory=list)

    def go_on(self, stop: threading.Event) -> None:
        ask = self._ask_cache() if self.cached else self._ask_files
        while not stop.wait(self.pause_s):
            self._check(ask)

    def _check(self, ask: Callable[[], QueryResult | None]) -> None:
        known = self.answers[-1].offline if self.answers else 0
        sent, version = self.arrivals.sent, newest_version(self.lab.halves.layout.half(Half.OFFLINE), known)
        result = ask()
        if result is None:  # a cache need not have an answer in the middle of a change
            return
        answer = understood(result, self.buckets)
        assert sent <= answer.shown <= self.arrivals.sent, f"{answer.shown} live rows, {sent} were sent before"
        assert version <= answer.offline, f"{answer} is older than version {version}"
        if self.answers:
            before = self.answers[-1]
            assert before.corrected <= answer.corrected, f"gone back: {sorted(before.corrected - answer.corrected)}"
        self.answers.append(answer)

    def _ask_files(self) -> QueryResult:
        return run(_SQL, self.lab.halves, QueryOptions(tail=self.arrivals.tail))

    def _ask_cache(self) -> Callable[[], QueryResult | None]:
        cache = SteppedCache(self.lab.halves, _NOW_MS, self.arrivals.tail)
        return lambda: cache.ask(_SQL)


class Crowd:
    """Threads that go on until it is left; what one of them finds wrong ends the test."""

    def __init__(self, *members: Callable[[threading.Event], None]) -> None:
        self._stop, self._wrong = threading.Event(), list[BaseException]()
        self._threads = [threading.Thread(target=self._guarded, args=(one,), daemon=True) for one in members]

    def __enter__(self) -> "Crowd":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(120)
        if failure[0] is None:
            self.complain()

    def complain(self) -> None:
        if self._wrong:
            raise self._wrong[0]

    def wait_until(self, is_so: Callable[[], Any], timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while not is_so():
            self.complain()
            assert time.monotonic() < deadline, "waited too long"
            time.sleep(0.05)

    def _guarded(self, member: Callable[[threading.Event], None]) -> None:
        try:
            member(self._stop)
        except BaseException as error:
            self._wrong.append(error)


# What must be so in the end


def check_answers(answers: Iterable[Answer], entries: Sequence[ReplacementEntry]) -> None:
    """Each answer shows exactly those buckets corrected whose commits its OFFLINE version holds."""
    at = [
        (entry.version, {start // BUCKET for start, _ in entry.lineage.buckets if start is not None})
        for entry in entries
    ]
    for answer in answers:
        expected = set[int]().union(*(done for version, done in at if version <= answer.offline))
        assert answer.corrected == expected, f"{answer}, but {sorted(expected)} were corrected"


def check_rows(lab: Lab, arrivals: Arrivals, buckets: int) -> None:
    """Every row is there once, corrected once when it was to be."""
    result = run("SELECT order_id, ts, amount FROM orders LIMIT 10000000", lab.halves, QueryOptions(tail=arrivals.tail))
    base = [
        (bucket * BASE_ROWS + number, bucket * BUCKET + number * 200, 1.0 + ADDED)
        for bucket in range(buckets)
        for number in range(BASE_ROWS)
    ]
    live = [live_row(n, buckets) for n in range(arrivals.sent)]
    assert sorted(map(tuple, result.rows)) == base + [(one.values["order_id"], one.time_ms, 1.0) for one in live]
