"""The oracle: what a table is, told with Python lists and none of the product's code.

It knows each row by where it lies in Kafka, keeps which of them were committed and which were moved as plain sets, and
never thinks of a boundary. Tests act on the product and on the oracle, and compare what is visible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

Place = tuple[str, str, int, int, int]  # connector, topic, epoch, partition, offset


@dataclass(frozen=True)
class Event:
    """A message at its place. `time` in ms (None: the table has no time column), `timestamp` is Kafka's, in ms."""

    place: Place
    time: int | None
    key: object = None
    comparison: object = None
    timestamp: int = 0
    is_delete: bool = False
    is_bad: bool = False
    payload: object = None

    @property
    def partition(self) -> tuple[str, str, int, int]:
        return self.place[:4]

    @property
    def offset(self) -> int:
        return self.place[4]

    @property
    def rank(self) -> tuple[object, ...]:
        """The row of a key with the greatest rank is the one that is seen (R5)."""
        return (self.comparison, self.timestamp, *self.place)


@dataclass
class Oracle:
    """A table: everything produced, and what has become of it. `upsert`: one row per key is visible, with `dedup` the
    first that arrived.
    """

    upsert: bool = False
    dedup: bool = False
    produced: list[Event] = field(default_factory=list)
    committed: list[Event] = field(default_factory=list)
    offline: dict[str, list[Event]] = field(default_factory=dict)
    moved: set[Place] = field(default_factory=set)
    moved_until: int | None = None

    def produce(self, *events: Event) -> None:
        """Puts events into Kafka."""
        self.produced.extend(events)

    def commit(self, ends: Mapping[tuple[str, str, int, int], int]) -> None:
        """Ingests what lies before `ends`, by partition."""
        known = {event.place for event in self.committed}
        for event in self.produced:
            if event.place not in known and event.offset < ends.get(event.partition, 0):
                self.committed.append(event)

    def rejected(self) -> set[Place]:
        """Where the messages lie that are no rows."""
        return {event.place for event in self.committed if event.is_bad}

    def waiting(self) -> list[Event]:
        """Good committed rows that have not been moved."""
        return [event for event in self.committed if not event.is_bad and event.place not in self.moved]

    def due(self, now: int, buffer: int, period: int, buckets_max: int | None) -> tuple[int | None, list[Event]]:
        """The end of the last bucket that a move takes now (None: no bucket), and the rows it takes.

        It takes late rows, and all rows of the next `buckets_max` buckets that hold others and ended `buffer` ago.
        """
        until = self.moved_until
        fresh = {event.time // period for event in self.waiting() if until is None or event.time >= until}
        closed = sorted(number for number in fresh if (number + 1) * period <= now - buffer)
        chosen = closed if buckets_max is None else closed[:buckets_max]
        end = (chosen[-1] + 1) * period if chosen else until
        return end, [event for event in self.waiting() if end is not None and event.time < end]

    def move(self, end: int | None, events: Iterable[Event], segment: str | None = None) -> None:
        """Moves these rows; `end` is what `due` said."""
        rows = list(events)
        self.moved |= {event.place for event in rows}
        self.offline.setdefault(segment or f"move-{len(self.offline)}", []).extend(rows)
        self.moved_until = end

    def replace(self, segment: str, rows: Iterable[Event]) -> None:
        """Puts other rows in place of an offline segment's."""
        self.offline[segment] = list(rows)

    def stored(self, *, tail: bool = True, limit: int | None = None) -> list[Event]:
        """Every good row once: offline ones, committed ones that were not moved, and with `tail` uncommitted ones.

        With a `limit` offline rows from it on stay out, and moved ones stand there as they were committed.
        """
        rows = [event for segment in self.offline.values() for event in segment] + self.waiting()
        if limit is not None:
            rows = [event for segment in self.offline.values() for event in segment if event.time < limit]
            rows += [event for event in self.committed if not event.is_bad and self._not_below(event, limit)]
        if tail:
            known = {event.place for event in self.committed}
            rows += [event for event in self.produced if event.place not in known and not event.is_bad]
        return rows

    def _not_below(self, event: Event, limit: int) -> bool:
        return event.place not in self.moved or (event.time is not None and event.time >= limit)

    def visible(self, *, tail: bool = True, limit: int | None = None) -> list[Event]:
        """What a query sees, by place."""
        rows = self.stored(tail=tail, limit=limit)
        rows = self.live(rows) if self.upsert else rows
        return sorted((row for row in rows if not row.is_delete), key=lambda row: row.place)

    def live(self, rows: Iterable[Event]) -> list[Event]:
        """The row of each key that is seen, delete markers among them."""
        return firsts(rows) if self.dedup else winners(rows)


def firsts(rows: Iterable[Event]) -> list[Event]:
    """Of each key the row that arrived first."""
    best: dict[object, Event] = {}
    for row in rows:
        if row.key not in best or row.rank[1:] < best[row.key].rank[1:]:
            best[row.key] = row
    return list(best.values())


def winners(rows: Iterable[Event], rank: Callable[[Event], tuple[object, ...]] = lambda row: row.rank) -> list[Event]:
    """The row of each key that is seen, delete markers among them."""
    best: dict[object, Event] = {}
    for row in rows:
        if row.key not in best or rank(row) > rank(best[row.key]):
            best[row.key] = row
    return list(best.values())
