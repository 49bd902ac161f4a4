"""Readers in processes of their own, which hold each answer to all that is known of it.

That is: to its own positions, to what has expired, to what the same reader saw before, and to what Kafka had.
"""

import http.client
import json
import os
import random
import re
import time
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from multiprocessing.connection import Connection
from typing import Any
from urllib.parse import urlsplit

from tests.soak.cold import COLD, COLD_ROWS, EACH, cold_lookup, cold_range
from tests.soak.events import FIRST_MS, PARTITIONS
from tests.soak.shared import SPAWN, Shared
from tests.soak.stream import (
    APPEND,
    DAY_MS,
    HOUR_MS,
    KEYS,
    STEP_MS,
    UPSERT,
    Positions,
    Rows,
    View,
    count,
    key,
    moment,
    newest,
    shown,
    versions,
)

# What a replacement puts in: its number, and how many rows it gives.
FIXED = re.compile(r"FIXED_\d+_(\d+)")
STALE_MS_MAX = 5000
_ROUNDING_MS = 5  # of an instant that comes from two clocks
_FILES_EACH = 500  # of so many statements one is for files, which takes as long as some dozens
_EXAMPLES_MAX, _RETRY_S = 10, 0.1
_NOTE_S, _NOTES_MAX = 0.02, 500
_NICE = 5  # as the server's pipeline is: whoever only asks must not take the cores from what there is to ask about
_HEADERS = {"Content-Type": "application/json"}
_TAIL = re.compile(r"(\w+)\[[^\]]*?tail=\{([^}]*)\}")
_OFFSET = re.compile(r"/(\d+)@(\d+)")

Views = Mapping[str, View]


# Questions


@dataclass(frozen=True)
class Question:
    """A statement. `wrong` says what its rows contradict when its tables show that, or nothing."""

    sql: str
    wrong: Callable[[Rows, Views], str]


def _exactly(sql: str, expected: Callable[[Views], Rows]) -> Question:
    def wrong(rows: Rows, at: Views) -> str:
        wanted = expected(at)
        return "" if rows == wanted else f"must be {wanted}"

    return Question(sql, wrong)


def total(table: str) -> Question:
    """Each row adds 1 to count and sum, and a customer (of an upsert table: a key) of its own."""
    own = "order_id" if table == UPSERT else "customer_id"
    sql = f"select count(*), sum(amount), distinctcount({own}) from {table}"

    def expected(at: Views) -> Rows:
        rows = count(table, at[table])
        return [[rows, rows or None, rows]]  # the sum of no rows is null

    return _exactly(sql, expected)


def by_status(table: str, low: int = 0, high: int = 1 << 62) -> Question:
    """Rows by status add up to all; a replacement's are all there or none is, for segments expire whole."""
    where = f"where ts >= {low} and ts < {high} " if low else ""
    sql = (
        f"select order_status, count(*), sum(amount), distinctcount(customer_id) from {table} {where}"
        "group by order_status order by order_status limit 10000"
    )

    def wrong(rows: Rows, at: Views) -> str:
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

    def expected(at: Views) -> Rows:
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
    """Two tables in one statement, each at its own positions and with its own cut."""
    sql = f"select a.n, u.n from (select count(*) n from {APPEND}) a, (select count(*) n from {UPSERT}) u"
    return _exactly(sql, lambda at: [[count(APPEND, at[APPEND]), count(UPSERT, at[UPSERT])]])


def by_partition(table: str) -> Question:
    """By a virtual column, which files answer."""

    def wrong(rows: Rows, at: Views) -> str:
        wanted = count(table, at[table])
        return "" if sum(row[1] for row in rows) == wanted else f"must add up to {wanted}"

    return Question(f"select $partition, count(*) from {table} group by $partition limit 100", wrong)


def cold(chance: random.Random) -> Question:
    """Of the table that lies on disk most of the time."""
    sql, rows = cold_range(chance.randrange) if chance.random() < 0.5 else cold_lookup(chance.randrange(COLD_ROWS))
    return _exactly(sql, lambda at: rows)


def draw(chance: random.Random, seen: View, number: int) -> Question:
    """The next statement of a reader that has seen so much; each 20th is of another shape than the common three."""
    if number % EACH == 0:
        return cold(chance)
    table, sent = chance.choice((APPEND, UPSERT)), sum(seen.positions)
    if number % _FILES_EACH == 1:
        return by_partition(table)
    if number % 20 == 0:
        first = min(sent, max(0, (seen.since_ms - FIRST_MS - HOUR_MS) // STEP_MS))
        low = FIRST_MS + chance.randrange(first * STEP_MS - HOUR_MS, sent * STEP_MS + HOUR_MS)
        more = (
            lambda: one_hour(table, low),
            lambda: newest_ten(table, low),
            lambda: newest_ten(table, FIRST_MS + sent * STEP_MS + DAY_MS),
            lambda: customer(table, chance.randrange(first, sent + 1)),
            lambda: whole_and_parts(table),
            both_tables,
        )
        return chance.choice(more)()
    kind = chance.random()
    if kind < 0.08:
        return total(table)
    if kind < 0.15:
        return by_status(table)
    p = chance.randrange(PARTITIONS)
    return lookup(table, p, chance.randrange(max(1, min(KEYS, seen.positions[p] // 2))))


# Readers


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
    """One answer: `at` are the positions of its tables, `fresh_ms` up to when it says to have everything.

    `cuts` are the numbers of the cuts that were done when it was asked for.
    """

    sql: str
    cuts: Mapping[str, int]
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
        self._cuts = dict.fromkeys((APPEND, UPSERT), 0)  # the first ones that what it saw allows
        self._acknowledged: deque[tuple[int, Positions]] = deque(maxlen=_NOTES_MAX)
        self._noted_at = 0.0
        self.seen = Seen()

    def read(self) -> Seen:
        """Until it is told to stop."""
        asked = 0
        while not self._shared.stopped.is_set():
            asked += 1
            question = draw(self._chance, self._seen_of_both(), asked)
            self._note_acknowledged()
            asked_ms, cuts = _now_ms(), {table: self._shared.cuts.done(table) for table in self._cuts}
            try:
                self._take(question, asked_ms, cuts, self._ask(question.sql))
            except _Refused:
                self.seen.found["lost"] += 1
                time.sleep(_RETRY_S)
        self._connection.close()
        return self.seen

    def _seen_of_both(self) -> View:
        """What it saw of the table of which it saw less."""
        before = [answer.at[table] for table, answer in self._last.items()]
        since = (self._shared.cuts.since(table, number)[0] for table, number in self._cuts.items())
        return View(min(before, key=sum, default=(0,) * PARTITIONS), min(since))

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

    def _take(self, question: Question, asked_ms: int, cuts: Mapping[str, int], given: Any) -> None:
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
        answer = _Answer(question.sql, cuts, asked_ms, source, rows, at, fresh_ms, revision)
        self.seen.found[source] += 1
        self.seen.found[f"of {COLD}, from {source}"] += not at
        took_ms = _now_ms() - asked_ms
        self.seen.took_ms[source] += took_ms
        self.seen.longest_ms[source] = max(self.seen.longest_ms[source], took_ms)
        self._shared.answers[self._number] += 1
        self._hold(question, answer)
        self._last |= dict.fromkeys(at, answer)

    def _hold(self, question: Question, answer: _Answer) -> None:
        """Complains of what the answer contradicts."""
        self._hold_to_its_cuts(question, answer)
        offered = tuple(self._shared.offered[:])
        for table, positions in answer.at.items():
            if not _covers(offered, positions):
                self._complain("more than sent", f"{answer}\n    only {offered} were sent")
            last = self._last.get(table)
            if last is not None and not _covers(positions, last.at[table]):
                self._complain(
                    "less than before", f"{answer}\n    {table} shows less than in the answer before: {last}"
                )
        if answer.at:  # else of a table without a stream
            self._hold_to_its_freshness(answer)

    def _hold_to_its_cuts(self, question: Question, answer: _Answer) -> None:
        """It is right at a cut of each of its tables that is not before one that was done, or one that was seen."""
        firsts = {table: max(answer.cuts[table], self._cuts[table]) for table in answer.at}
        right, contradicted = self._right_at(question, answer, firsts)
        if right:
            self._cuts |= {table: min(found[table] for found in right) for table in answer.at}
            return
        before, _ = self._right_at(question, answer, dict.fromkeys(answer.at, 0))
        cuts = f"from cuts {firsts} on" + (f", but right at {before}: rows came back" if before else "")
        self._complain("wrong", f"{answer}\n    {contradicted}, {cuts}")

    def _right_at(
        self, question: Question, answer: _Answer, firsts: Mapping[str, int]
    ) -> tuple[list[dict[str, int]], str]:
        """Of all cuts from the `firsts` on those at which an answer is right, and what it contradicts at the others."""
        times = {table: self._shared.cuts.since(table, first) for table, first in firsts.items()}
        right, contradicted = [], ""
        for places in product(*(range(len(cuts)) for cuts in times.values())):
            at = dict(zip(times, places, strict=True))
            views = {table: View(answer.at[table], times[table][place]) for table, place in at.items()}
            if wrong := question.wrong(answer.rows, views):
                contradicted = contradicted or wrong
            else:
                right.append({table: firsts[table] + place for table, place in at.items()})
        return right, contradicted

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
