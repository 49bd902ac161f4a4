"""A stream of which every prefix is known by arithmetic.

Event n goes to partition p = n mod PARTITIONS as its number i there. It has an amount of 1, a customer of its own (n),
and a time that goes on by STEP_MS; events of two of each TURN numbers come late. Even numbers bring new keys, odd ones
go round KEYS keys of their partition, so slowly that the newest version also has the greatest time. So what a table
shows at the positions that its answer names is a handful of ranges of numbers, however long the stream has become; and
where retention drops what is older than some time, nothing older comes in its place.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nlargest
from typing import Any

from tests.soak.events import FIRST_MS, PARTITIONS, Event

APPEND, UPSERT = "soak_a", "soak_u"
STATUSES = ("CREATED", "PAID", "PACKED", "SHIPPED", "DELIVERED")
STEP_MS, HOUR_MS, DAY_MS = 3600, 3_600_000, 86_400_000
TURN, LATE = 20, (7, 12)
LATE_MS = 3 * HOUR_MS // 2 + STEP_MS // 2  # not a multiple of STEP_MS: no two times are equal
KEYS = 853  # 5 h between the versions of a key: one that is late is still newer than the one before it
_NEW_KEY = 1_000_000_000

Rows = list[list[Any]]
Positions = tuple[int, ...]


@dataclass(frozen=True)
class View:
    """What a table shows: the stream up to `positions`, but rows with times before `since_ms`, which have expired."""

    positions: Positions
    since_ms: int = 0


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


def shown(table: str, view: View, low: int = 0, high: int = 1 << 62) -> Iterator[tuple[int, range]]:
    """The numbers of the visible rows with times in [low, high), by partition, in evenly spaced ranges."""
    low = max(low, view.since_ms)
    for p, end in enumerate(view.positions):
        for residue in range(TURN):
            # Of the keys that come again, an upsert table shows the last round.
            first = max(0, 2 * (end // 2 - KEYS)) if table == UPSERT and residue % 2 else 0
            first, last = max(first, _number(p, residue, low)), min(end, _number(p, residue, high))
            yield p, range(first + (residue - first) % TURN, last, TURN)


def _number(p: int, residue: int, time_ms: int) -> int:
    """The first number of a partition whose time is not below `time_ms`, if all were as late as this residue."""
    ahead = time_ms - FIRST_MS + _lateness(residue) - p * STEP_MS
    return -(-ahead // (PARTITIONS * STEP_MS))


def count(table: str, view: View, low: int = 0, high: int = 1 << 62) -> int:
    """How many rows are visible, of a range of times."""
    return sum(len(numbers) for _, numbers in shown(table, view, low, high))


def newest(table: str, view: View, before: int, limit: int) -> Rows:
    """The newest visible rows before a time: key, customer and time."""
    near = ((p, i) for p, numbers in shown(table, view, high=before) for i in numbers[-limit:])
    found = nlargest(limit, near, key=lambda place: moment(*place))
    return [[key(p, i), i * PARTITIONS + p, moment(p, i)] for p, i in found]


def versions(table: str, view: View, p: int, slot: int) -> Rows:
    """The visible rows of a key that comes again, oldest first."""
    numbers = range(2 * slot + 1, view.positions[p], 2 * KEYS)[-1 if table == UPSERT else 0 :]
    found = ((i, moment(p, i)) for i in numbers)
    return [[key(p, i), i * PARTITIONS + p, 1.0, time_ms] for i, time_ms in found if time_ms >= view.since_ms]
