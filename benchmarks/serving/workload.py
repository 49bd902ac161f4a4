"""The workload: order events that are the same each time, eight statements over them, and what each must answer.

The oracle is numpy over the events, so it shares nothing with any of the systems. Amounts are multiples of 0.25: their
sums are exact in whatever order they are added, so answers are compared for equality.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

PARTITIONS = 2
START_MS = 1_632_441_600_000  # 2021-09-24, midnight UTC
HOUR_MS = 3_600_000
SPAN_MS = 48 * HOUR_MS
STATUSES = ("CREATED", "DELIVERED", "PACKED", "PAID", "RETURNED", "SHIPPED")  # sorted: a code is also a rank
_WEIGHTS = (0.3, 0.2, 0.15, 0.2, 0.05, 0.1)
_SEED = 20210924
_CHUNK = 100_000

Rows = list[list[Any]]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Sizes:
    """Of `rows` events: each key occurs four times, each customer has ten keys (some have far more)."""

    rows: int

    @property
    def keys(self) -> int:
        return max(1, self.rows // 4)

    @property
    def customers(self) -> int:
        return max(1, self.keys // 10)


@dataclass(frozen=True)
class Events:
    """Columns of events in the order of their times, which are unique; `status` holds numbers of STATUSES."""

    order_id: Ints
    customer_id: Ints
    status: Ints
    amount: NDArray[np.float64]
    ts: Ints

    def __len__(self) -> int:
        return len(self.ts)

    def where(self, chosen: Ints | slice) -> Events:
        return Events(
            self.order_id[chosen], self.customer_id[chosen], self.status[chosen], self.amount[chosen], self.ts[chosen]
        )

    def latest(self) -> Events:
        """What an upsert table shows: the newest event of each key."""
        _, from_the_end = np.unique(self.order_id[::-1], return_index=True)
        return self.where(np.sort(len(self) - 1 - from_the_end))

    def before(self, ts: int) -> int:
        """How many are older than `ts`."""
        return int(np.searchsorted(self.ts, ts))

    def messages(self, partition: int) -> Iterator[bytes]:
        """The messages of a partition; a key is always in the same one."""
        mine = np.flatnonzero(self.order_id % PARTITIONS == partition)
        for low in range(0, len(mine), _CHUNK):
            some = self.where(mine[low : low + _CHUNK])
            columns = (some.order_id, some.customer_id, some.status, some.amount, some.ts)
            for row in zip(*(column.tolist() for column in columns), strict=True):
                yield message(*row)


def message(order_id: int, customer_id: int, status: int, amount: float, ts: int) -> bytes:
    return (
        f'{{"order_id":{order_id},"customer_id":{customer_id},"order_status":"{STATUSES[status]}",'
        f'"amount":{amount},"ts":{ts}}}'
    ).encode()


def make_events(sizes: Sizes) -> Events:
    """Events over 48 h, evenly but for a jitter; some customers order much more than others."""
    chance, rows = np.random.default_rng(_SEED), sizes.rows
    owner = (chance.random(sizes.keys) ** 2 * sizes.customers).astype(np.int64)
    order_id = chance.integers(0, sizes.keys, rows)
    step = SPAN_MS // rows
    return Events(
        order_id=order_id,
        customer_id=owner[order_id],
        status=chance.choice(len(STATUSES), rows, p=_WEIGHTS),
        amount=chance.integers(4, 2001, rows) / 4,
        ts=START_MS + np.arange(rows) * step + chance.integers(0, step, rows),
    )


@dataclass(frozen=True)
class Statement:
    """One of the eight. `draw` maps a number from 0 to `space(sizes)` to the parameter, `answer` is the oracle."""

    name: str
    scan: bool
    text: str
    space: Callable[[Sizes], int]
    draw: Callable[[int], int]
    answer: Callable[[Events, int], Rows]

    def sql(self, table: str, parameter: int, dialect: Callable[[str], str] = str) -> str:
        return dialect(self.text).format(table=table, p=parameter, hour=parameter + HOUR_MS)


class Parameters:
    """Parameters of one client, no two the same: client `lane` of `lanes` draws where no other one does."""

    def __init__(self, sizes: Sizes, lane: int = 0, lanes: int = 1) -> None:
        self._sizes, self._lane, self._lanes = sizes, lane, lanes
        self._chance = random.Random(_SEED + lane)
        self._used: set[tuple[str, int]] = set()

    def next(self, statement: Statement) -> int:
        space = statement.space(self._sizes) // self._lanes
        for _ in range(100):  # small sizes may run out of customers: then one is asked for again
            number = self._chance.randrange(max(1, space)) * self._lanes + self._lane
            if (statement.name, number) not in self._used:
                break
        self._used.add((statement.name, number))
        return statement.draw(number)


def _by_status(events: Events, low: int, high: int) -> Rows:
    status = events.status[low:high]
    counts = np.bincount(status, minlength=len(STATUSES)).tolist()
    sums = np.bincount(status, weights=events.amount[low:high], minlength=len(STATUSES)).tolist()
    return [[name, count, total] for name, count, total in zip(STATUSES, counts, sums, strict=True) if count]


def _top(events: Events, since: int) -> Rows:
    low = events.before(since)
    sums = np.bincount(events.customer_id[low:], weights=events.amount[low:])
    best = np.lexsort((np.arange(len(sums)), -sums))[:10]
    return [[int(customer), float(sums[customer])] for customer in best if sums[customer] > 0]


def _rows(events: Events, places: Ints | range, names: Sequence[str]) -> Rows:
    chosen = events.where(np.asarray(places, dtype=np.int64))
    columns = [
        [STATUSES[code] for code in chosen.status.tolist()] if name == "status" else getattr(chosen, name).tolist()
        for name in names
    ]
    return [list(row) for row in zip(*columns, strict=True)]


def _newest(events: Events, until: int) -> Rows:
    high = events.before(until)
    return _rows(events, range(high - 1, max(-1, high - 11), -1), ("order_id", "status", "amount", "ts"))


def _history(events: Events, customer: int) -> Rows:
    places = np.flatnonzero(events.customer_id == customer)[::-1][:20]
    return _rows(events, places, ("order_id", "status", "amount", "ts"))


def _lookup(events: Events, key: int) -> Rows:
    names = ("order_id", "customer_id", "status", "amount", "ts")
    return _rows(events, np.flatnonzero(events.order_id == key), names)


def _first_hour(number: int) -> int:
    return START_MS + number


def _last_hour(number: int) -> int:
    return START_MS + SPAN_MS - HOUR_MS + number


def _same(number: int) -> int:
    return number


# A scan leaves out a part of the first hour, so that it is another one each time and reads nearly everything.
STATEMENTS = (
    Statement(
        "full group-by",
        True,
        "select order_status, count(*), sum(amount) from {table} where ts >= {p} "
        "group by order_status order by order_status limit 100",
        lambda sizes: HOUR_MS,
        _first_hour,
        lambda events, p: _by_status(events, events.before(p), len(events)),
    ),
    Statement(
        "top 10 by sum",
        True,
        "select customer_id, sum(amount) from {table} where ts >= {p} "
        "group by customer_id order by sum(amount) desc, customer_id limit 10",
        lambda sizes: HOUR_MS,
        _first_hour,
        _top,
    ),
    Statement(
        "distinct count",
        True,
        "select distinctcount(customer_id) from {table} where ts >= {p}",
        lambda sizes: HOUR_MS,
        _first_hour,
        lambda events, p: [[len(np.unique(events.customer_id[events.before(p) :]))]],
    ),
    Statement(
        "count",
        False,
        "select count(*) from {table} where ts >= {p}",
        lambda sizes: SPAN_MS,
        _first_hour,
        lambda events, p: [[len(events) - events.before(p)]],
    ),
    Statement(
        "key lookup",
        False,
        "select order_id, customer_id, order_status, amount, ts from {table} where order_id = {p} "
        "order by ts limit 100",
        lambda sizes: sizes.keys,
        _same,
        _lookup,
    ),
    Statement(
        "one-hour group-by",
        False,
        "select order_status, count(*), sum(amount) from {table} where ts >= {p} and ts < {hour} "
        "group by order_status order by order_status limit 100",
        lambda sizes: SPAN_MS - HOUR_MS,
        _first_hour,
        lambda events, p: _by_status(events, events.before(p), events.before(p + HOUR_MS)),
    ),
    Statement(
        "newest 10",
        False,
        "select order_id, order_status, amount, ts from {table} where ts < {p} order by ts desc limit 10",
        lambda sizes: HOUR_MS,
        _last_hour,
        _newest,
    ),
    Statement(
        "customer history",
        False,
        "select order_id, order_status, amount, ts from {table} where customer_id = {p} order by ts desc limit 20",
        lambda sizes: sizes.customers,
        _same,
        _history,
    ),
)
BY_NAME = {statement.name: statement for statement in STATEMENTS}
GROWING = (BY_NAME["key lookup"], BY_NAME["one-hour group-by"])
