"""Readers in processes of their own, and a stream of which every prefix is known by arithmetic.

Event n goes to partition p = n mod PARTITIONS as its number i there. It has an amount of 1, a customer of its own (n),
and a time that goes on by STEP_MS; events of two of each TURN numbers come late. Even numbers bring new keys, odd ones
go round KEYS keys of their partition, so slowly that the newest version also has the greatest time. So what a table
shows at the positions that its answer names is a handful of ranges of numbers, however long the stream has become, and
each answer is held to all of it: to its own positions, to what the same reader saw before, and to what Kafka had.
"""

import ctypes
import http.client
import json
import multiprocessing
import os
import random
import re
import time
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import RawArray
from multiprocessing.synchronize import Event as Flag
from typing import Any
from urllib.parse import urlsplit

from tests.soak.events import FIRST_MS, PARTITIONS, Event

SPAWN = multiprocessing.get_context("spawn")
APPEND, UPSERT = "soak_a", "soak_u"
STATUSES = ("CREATED", "PAID", "PACKED", "SHIPPED", "DELIVERED")
# What a replacement puts in: its number, and how many rows it gives.
FIXED = re.compile(r"FIXED_\d+_(\d+)")
STEP_MS, HOUR_MS, DAY_MS = 3600, 3_600_000, 86_400_000
TURN, LATE = 20, (7, 12)
LATE_MS = 3 * HOUR_MS // 2 + STEP_MS // 2  # not a multiple of STEP_MS: no two times are equal
KEYS = 853  # 5 h between the versions of a key: one that is late is still newer than the one before it
_NEW_KEY = 1_000_000_000
STALE_MS_MAX = 5000
_ROUNDING_MS = 5  # of an instant that comes from two clocks
_EXAMPLES_MAX, _RETRY_S = 10, 0.1
_NOTE_S, _NOTES_MAX = 0.02, 500
_NICE = 10  # as the server's pipeline is: whoever only asks must not take the cores from what there is to ask about
_HEADERS = {"Content-Type": "application/json"}
_TAIL = re.compile(r"(\w+)\[[^\]]*?tail=\{([^}]*)\}")
_OFFSET = re.compile(r"/(\d+)@(\d+)")

Rows = list[list[Any]]
Positions = tuple[int, ...]
Numbers = ctypes.Array[Any]


# The stream


def event(n: int) -> Event:
    """The nth event."""
    i, p = divmod(n, PARTITIONS)
    status = STATUSES[n % len(STATUSES)]
    row = {"order_id": key(p, i), "customer_id": n, "order_status": status, "amount": 1.0, "ts": moment(p, i)}
    return Event(p, i, json.dumps(row).encode(), row)


def ends(sent: int) -> Positions:
    """Where each partition ends after the first `sent` events."""
    return tuple((sent - p + PARTITIONS - 1) // PARTITIONS for p in range(PARTITIONS))


def key(p: int, i: int) -> int:
    """An even number's key is a new one, an odd one's one of KEYS."""
    return _NEW_KEY + i * PARTITIONS + p if i % 2 == 0 else i // 2 % KEYS * PARTITIONS + p


def moment(p: int, i: int) -> int:
    """The time of number `i` of partition `p`, epoch ms."""
    return FIRST_MS + (i * PARTITIONS + p) * STEP_MS - _lateness(i % TURN)


def _lateness(residue: int) -> int:
    return LATE_MS if residue in LATE else 0


def shown(table: str, positions: Positions, low: int = 0, high: int = 1 << 62) -> Iterator[tuple[int, range]]:
    """The numbers of the visible rows with times in [low, high), by partition, in evenly spaced ranges."""
    for p, end in enumerate(positions):
        for residue in range(TURN):
            # Of the keys that come again, an upsert table shows the last round.
            first = max(0, 2 * (end // 2 - KEYS)) if table == UPSERT and residue % 2 else 0
            first, last = max(first, _number(p, residue, low)), min(end, _number(p, residue, high))
            yield p, range(first + (residue - first) % TURN, last, TURN)


def _number(p: int, residue: int, time_ms: int) -> int:
    """The first number of a partition whose time is not below `time_ms`, if all were as late as this residue."""
    ahead = time_ms - FIRST_MS + _lateness(residue) - p * STEP_MS
    return -(-ahead // (PARTITIONS * STEP_MS))


def count(table: str, positions: Positions, low: int = 0, high: int = 1 << 62) -> int:
    """How many rows are visible, of a range of times."""
    return sum(len(numbers) for _, numbers in shown(table, positions, low, high))


def newest(table: str, positions: Positions, before: int, limit: int) -> Rows:
    """The newest visible rows before a time: key, customer and time."""
    near = ((p, i) for p, numbers in shown(table, positions, high=before) for i in numbers[-limit:])
    found = nlargest(limit, near, key=lambda place: moment(*place))
    return [[key(p, i), i * PARTITIONS + p, moment(p, i)] for p, i in found]


def versions(table: str, positions: Positions, p: int, slot: int) -> Rows:
    """The visible rows of a key that comes again, oldest first."""
    numbers = range(2 * slot + 1, positions[p], 2 * KEYS)
    return [[key(p, i), i * PARTITIONS + p, 1.0, moment(p, i)] for i in numbers[-1 if table == UPSERT else 0 :]]


# Questions


@dataclass(frozen=True)
class Question:
    """A statement. `wrong` says what its rows contradict at their tables' positions, or nothing."""

    sql: str
    wrong: Callable[[Rows, Mapping[str, Positions]], str]


def _exactly(sql: str, expected: Callable[[Mapping[str, Positions]], Rows]) -> Question:
    def wrong(rows: Rows, at: Mapping[str, Positions]) -> str:
        wanted = expected(at)
        return "" if rows == wanted else f"must be {wanted}"

    return Question(sql, wrong)


def total(table: str) -> Question:
    """Each row adds 1 to count and sum, and a customer (of an upsert table: a key) of its own."""
    own = "order_id" if table == UPSERT else "customer_id"
    sql = f"select count(*), sum(amount), distinctcount({own}) from {table}"

    def expected(at: Mapping[str, Positions]) -> Rows:
        rows = count(table, at[table])
        return [[rows, rows or None, rows]]  # the sum of no rows is null

    return _exactly(sql, expected)


def by_status(table: str, low: int = 0, high: int = 1 << 62) -> Question:
    """Rows by status add up to all; a replacement's are all there or none is."""
    where = f"where ts >= {low} and ts < {high} " if low else ""
    sql = (
        f"select order_status, count(*), sum(amount), distinctcount(customer_id) from {table} {where}"
        "group by order_status order by order_status limit 10000"
    )

    def wrong(rows: Rows, at: Mapping[str, Positions]) -> str:
        wanted, found = count(table, at[table], low, high), sum(row[1] for row in rows)
        if found != wanted or any(row[1] != row[2] or row[1] != row[3] for row in rows):
            return f"must add up to {wanted}, and adds up to {found}"
        # An upsert table's lose to newer versions, and a range of times cuts them.
        is_whole = table == APPEND and not low
        given = [(row, int(name[1])) for row in rows if (name := FIXED.fullmatch(row[0]))]
        torn = [row for row, rows_given in given if row[1] > rows_given or (is_whole and row[1] != rows_given)]
        return f"rows of a replacement are not as it gave them: {torn}" if torn else ""

    return Question(sql, wrong)


def one_hour(table: str, low: int) -> Question:
    """One hour from a time on."""
    return by_status(table, low, low + HOUR_MS)


def lookup(table: str, p: int, slot: int) -> Question:
    """The one newest version of a key on an upsert table, all of them on an append table."""
    sql = f"select order_id, customer_id, amount, ts from {table} where order_id = {key(p, 2 * slot + 1)} "
    return _exactly(f"{sql}order by ts limit 10000", lambda at: versions(table, at[table], p, slot))


def customer(table: str, n: int) -> Question:
    """The one row of a customer, unless a newer version of its key has taken its place."""
    i, p = divmod(n, PARTITIONS)

    def expected(at: Mapping[str, Positions]) -> Rows:
        is_shown = any(q == p and i in numbers for q, numbers in shown(table, at[table]))
        return [[key(p, i), moment(p, i)]] if is_shown else []

    return _exactly(f"select order_id, ts from {table} where customer_id = {n} limit 10", expected)


def newest_ten(table: str, before: int) -> Question:
    """In their order."""
    sql = f"select order_id, customer_id, ts from {table} where ts < {before} order by ts desc limit 10"
    return _exactly(sql, lambda at: newest(table, at[table], before, 10))


def whole_and_parts(table: str) -> Question:
    """The table twice in one statement: both are the same rows."""
    sql = (
        f"select sum(part.n), max(whole.n) from (select order_status, count(*) n from {table} group by 1) part, "
        f"(select count(*) n from {table}) whole"
    )
    return _exactly(sql, lambda at: [[count(table, at[table])] * 2])


def both_tables() -> Question:
    """Two tables in one statement, each at its own positions."""
    sql = f"select a.n, u.n from (select count(*) n from {APPEND}) a, (select count(*) n from {UPSERT}) u"
    return _exactly(sql, lambda at: [[count(APPEND, at[APPEND]), count(UPSERT, at[UPSERT])]])


def by_partition(table: str) -> Question:
    """By a virtual column, which files answer."""

    def wrong(rows: Rows, at: Mapping[str, Positions]) -> str:
        wanted = count(table, at[table])
        return "" if sum(row[1] for row in rows) == wanted else f"must add up to {wanted}"

    return Question(f"select $partition, count(*) from {table} group by $partition limit 100", wrong)


def draw(chance: random.Random, seen: Positions, number: int) -> Question:
    """The next statement of a reader that has seen so much; each 20th is of another shape than the common three."""
    table, sent = chance.choice((APPEND, UPSERT)), sum(seen)
    if number % 20 == 0:
        low = FIRST_MS + chance.randrange(-HOUR_MS, sent * STEP_MS + HOUR_MS)
        more = (
            lambda: one_hour(table, low),
            lambda: newest_ten(table, low),
            lambda: newest_ten(table, FIRST_MS + sent * STEP_MS + DAY_MS),
            lambda: customer(table, chance.randrange(sent + 1)),
            lambda: whole_and_parts(table),
            both_tables,
            lambda: by_partition(table),
        )
        return chance.choice(more)()
    kind = chance.random()
    if kind < 0.2:
        return total(table)
    if kind < 0.35:
        return by_status(table)
    p = chance.randrange(PARTITIONS)
    return lookup(table, p, chance.randrange(max(1, min(KEYS, seen[p] // 2))))


# Readers


@dataclass(frozen=True)
class Shared:
    """What readers and those who write tell each other. By partition: what was given to Kafka, what it acknowledged.

    Each number has one who writes it, so that none needs a lock.
    """

    offered: Numbers
    acknowledged: Numbers
    answers: Numbers
    wrong: Numbers
    stopped: Flag

    @classmethod
    def of(cls, readers: int) -> "Shared":
        by_partition, by_reader = (PARTITIONS, PARTITIONS), (readers, readers)
        offered, acknowledged, answers, wrong = (RawArray("q", size) for size in by_partition + by_reader)
        return cls(offered, acknowledged, answers, wrong, SPAWN.Event())


@dataclass
class Seen:
    """What a reader was answered. `found` counts answers by `answeredFrom` and by what else there is to tell.

    `took_ms` are the milliseconds that answers took, all together and the longest, by `answeredFrom`.
    """

    found: Counter[str] = field(default_factory=Counter)
    took_ms: Counter[str] = field(default_factory=Counter)
    longest_ms: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Answer:
    """One answer: `at` are the positions of its tables, `fresh_ms` up to when it says to have everything."""

    sql: str
    asked_ms: int
    source: str
    rows: Rows
    at: Mapping[str, Positions]
    fresh_ms: int
    revision: str

    def __str__(self) -> str:
        text = f"{self.sql}\n    answered {_short(self.rows)} from {self.source}, fresh at {self.fresh_ms}"
        return f"{text}: {self.revision}"


class _Refused(Exception):
    """The connection broke before the answer came, or there was none."""


class Reader:
    """Asks as fast as it is answered, on one kept connection, and holds each answer to all that it knows."""

    def __init__(self, number: int, url: str, shared: Shared) -> None:
        parts = urlsplit(url)
        assert parts.hostname
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=60)
        self._number, self._shared, self._chance = number, shared, random.Random(number)
        self._last: dict[str, _Answer] = {}
        self._acknowledged: deque[tuple[int, Positions]] = deque(maxlen=_NOTES_MAX)
        self._noted_at = 0.0
        self.seen = Seen()

    def read(self) -> Seen:
        """Until it is told to stop."""
        asked = 0
        while not self._shared.stopped.is_set():
            asked += 1
            before = [answer.at[table] for table, answer in self._last.items()]
            question = draw(self._chance, min(before, key=sum, default=(0,) * PARTITIONS), asked)
            self._note_acknowledged()
            asked_ms = _now_ms()
            try:
                self._take(question, asked_ms, self._ask(question.sql))
            except _Refused:
                self.seen.found["lost"] += 1
                time.sleep(_RETRY_S)
        self._connection.close()
        return self.seen

    def _note_acknowledged(self) -> None:
        """Notes what Kafka had acknowledged by now."""
        if time.monotonic() - self._noted_at > _NOTE_S:
            self._noted_at = time.monotonic()
            acknowledged = tuple(self._shared.acknowledged[:])
            self._acknowledged.append((_now_ms() + 1, acknowledged))

    def _ask(self, sql: str) -> Any:
        try:
            self._connection.request("POST", "/query/sql", json.dumps({"sql": sql}).encode(), _HEADERS)
            response = self._connection.getresponse()
            status, body = response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise _Refused from error
        return json.loads(body) if status == 200 else {"exceptions": [status, body.decode(errors="replace")]}

    def _take(self, question: Question, asked_ms: int, given: Any) -> None:
        if given["exceptions"]:
            self._complain("failed", f"{question.sql}\n    failed: {given['exceptions']}")
            return
        at = positions_of(given["revision"])
        if given["warnings"]:  # it says that it could not see all: nothing is known of its positions
            self.seen.found["warned"] += 1
            if not all("committed rows only" in warning for warning in given["warnings"]):
                self._complain("warned of something else", f"{question.sql}\n    warns: {given['warnings']}")
            return
        source, fresh_ms = given["answeredFrom"], given["minConsumingFreshnessTimeMs"]
        rows, revision = given["resultTable"]["rows"], given["revision"]
        answer = _Answer(question.sql, asked_ms, source, rows, at, fresh_ms, revision)
        self.seen.found[source] += 1
        took_ms = _now_ms() - asked_ms
        self.seen.took_ms[source] += took_ms
        self.seen.longest_ms[source] = max(self.seen.longest_ms[source], took_ms)
        self._shared.answers[self._number] += 1
        self._hold(question, answer)
        self._last |= dict.fromkeys(at, answer)

    def _hold(self, question: Question, answer: _Answer) -> None:
        """Complains of what the answer contradicts."""
        contradicted = question.wrong(answer.rows, answer.at)
        if contradicted:
            self._complain("wrong", f"{answer}\n    {contradicted}")
        offered = tuple(self._shared.offered[:])
        for table, positions in answer.at.items():
            if not _covers(offered, positions):
                self._complain("more than sent", f"{answer}\n    only {offered} were sent")
            last = self._last.get(table)
            if last is not None and not _covers(positions, last.at[table]):
                self._complain(
                    "less than before", f"{answer}\n    {table} shows less than in the answer before: {last}"
                )
        self._hold_to_its_freshness(answer)

    def _hold_to_its_freshness(self, answer: _Answer) -> None:
        """All that was acknowledged by the time that an answer tells is in it, and that time is not long ago."""
        stale_ms = answer.asked_ms - answer.fresh_ms
        if stale_ms > STALE_MS_MAX:
            self._complain("stale", f"{answer}\n    has all until {stale_ms} ms before it was asked, no later")
        told = self._acknowledged_at(answer.fresh_ms - _ROUNDING_MS)
        if told is not None and not all(_covers(positions, told) for positions in answer.at.values()):
            self._complain("less than told", f"{answer}\n    does not have {told}, acknowledged by then")

    def _acknowledged_at(self, at_ms: int) -> Positions | None:
        """What had been acknowledged by an instant; None when that is too long ago to be known."""
        place = bisect_right(self._acknowledged, at_ms, key=lambda noted: noted[0])
        return self._acknowledged[place - 1][1] if place else None

    def _complain(self, what: str, text: str) -> None:
        self.seen.found[what] += 1
        self._shared.wrong[self._number] += 1
        if len(self.seen.wrong) < _EXAMPLES_MAX:
            self.seen.wrong.append(f"{what}: {text}")


def positions_of(revision: str) -> dict[str, Positions]:
    """The position after each partition's rows, by table, of a response's `revision`."""
    found = {}
    for table, text in _TAIL.findall(revision):
        by_partition = {int(p): int(offset) for p, offset in _OFFSET.findall(text)}
        found[table] = tuple(by_partition.get(p, 0) for p in range(PARTITIONS))
    return found


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _covers(those: Sequence[int], these: Sequence[int]) -> bool:
    return all(one >= other for one, other in zip(those, these, strict=True))


def _short(rows: Rows) -> str:
    return str(rows) if len(rows) <= 12 else f"{rows[:12]} and {len(rows) - 12} more"


def read(number: int, url: str, shared: Shared, told: Connection) -> None:
    """The work of a reader's process; what it saw goes through `told`."""
    os.nice(_NICE)
    told.send(Reader(number, url, shared).read())
    told.close()


class Readers:
    """Reader processes at work on a server. Use it in a `with`; `seen` stops them and tells what they saw."""

    def __init__(self, url: str, shared: Shared) -> None:
        self._shared = shared
        self._told: list[Connection] = []
        self._processes = []
        for number in range(len(shared.answers)):
            mine, theirs = SPAWN.Pipe(duplex=False)
            self._told.append(mine)
            self._processes.append(SPAWN.Process(target=read, args=(number, url, shared, theirs), daemon=True))

    def __enter__(self) -> "Readers":
        for process in self._processes:
            process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._shared.stopped.set()
        for process in self._processes:
            process.join(timeout=10)
            if process.is_alive():
                process.kill()

    def are_at_work(self) -> bool:
        """Whether none has ended."""
        return all(process.is_alive() for process in self._processes)

    def seen(self) -> Seen:
        """What all of them saw."""
        self._shared.stopped.set()
        everything = Seen()
        for told in self._told:
            assert told.poll(90), "a reader does not end"
            one: Seen = told.recv()
            everything.found.update(one.found)
            everything.took_ms.update(one.took_ms)
            everything.longest_ms |= one.longest_ms
            everything.wrong += one.wrong
        return everything
