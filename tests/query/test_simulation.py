"""A seeded life of a table (produce, commit, move, replace, set and clear the boundary, query in between) against the
oracle of Python lists.

Most lives are played in `test_cached`, which asks the files and the cache.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from hybrid.config.table_config import ARRIVED, BoundaryMode, UpsertConfig
from hybrid.table.boundary import INFINITE, PartitionKey
from hybrid.table.upsert_order import REPLACEMENT_CONNECTOR, replacement_topic
from tests.oracle import Event, Oracle
from tests.query.halves import Halves, ListTail, Row, orders_spec

PARTITIONS = [PartitionKey("kafka", "orders", 0, 0), PartitionKey("kafka", "orders", 0, 1)]
BUCKET = 1000
LAG = 1500
Ask = Callable[..., Any]


@dataclass
class Life:
    """One table, its oracle, and the dice."""

    halves: Halves
    oracle: Oracle
    dice: random.Random
    ends: dict[PartitionKey, int] = field(default_factory=lambda: dict.fromkeys(PARTITIONS, 0))
    committed: dict[PartitionKey, int] = field(default_factory=lambda: dict.fromkeys(PARTITIONS, 0))

    override: int | None = None

    @property
    def timed(self) -> bool:
        return self.halves.spec.time_column is not None

    @property
    def last(self) -> int | None:
        """The last time in the offline half."""
        times = [event.time for rows in self.oracle.offline.values() for event in rows]
        return max((time for time in times if time is not None), default=None)

    @property
    def limit(self) -> int | None:
        """Where offline rows end to be seen; None: nowhere."""
        pinot = self.halves.offline.boundary.mode is BoundaryMode.PINOT
        return self.last - LAG + 1 if pinot and self.override is None and self.last is not None else self.override

    def produce(self) -> None:
        key = self.dice.choice(PARTITIONS)
        for _ in range(self.dice.randrange(1, 6)):
            self.ends[key] += self.dice.choice([0, 0, 1])  # a hole, as transactions leave
            ts = self.dice.randrange(0, 8 * BUCKET)
            event = Event(
                place=(*key, self.ends[key]),
                time=ts if self.timed else None,
                key=self.dice.randrange(6),
                comparison=ts // 500 * 500 if self.halves.spec.upsert else ts,
                timestamp=self.dice.randrange(4),
                is_delete=self.oracle.upsert and not self.oracle.dedup and self.dice.random() < 0.2,
                is_bad=self.dice.random() < 0.1,
            )
            event = Event(**{**vars(event), "time": event.comparison if self.timed else None})
            self.ends[key] += 1
            self.oracle.produce(event)

    def commit(self) -> None:
        upto = {key: self.dice.randrange(self.committed[key], end + 1) for key, end in self.ends.items()}
        before = {event.place for event in self.oracle.committed}
        self.oracle.commit(upto)  # type: ignore[arg-type]
        new = [event for event in self.oracle.committed if event.place not in before]
        self.committed = upto
        self.halves.commit_realtime([self.row(event) for event in new], offsets=dict(upto))

    def move(self) -> None:
        if self.timed:
            end, rows = self.oracle.due(self.dice.randrange(10 * BUCKET), 0, BUCKET, self.dice.choice([1, None]))
        else:
            end, rows = INFINITE, self.oracle.waiting()
        if end is None:
            return
        first = len(self.oracle.offline)
        # A move may say that it wrote rows as they were stored; its files may share times, or hold winners only.
        chance = random.Random(first)
        as_stored, parts = chance.random() < 0.7, chance.choice([1, 1, 2, 3])
        cut = chance.choice(
            [lambda event: (event.time or 0) * parts // (8 * BUCKET), lambda event: event.offset % parts]
        )
        kept = self.latest(rows) if self.oracle.upsert and chance.random() < 0.5 else rows
        self.oracle.move(end, rows, f"orders_{first}")
        by_segment: dict[str, list[Event]] = {f"orders_{first + part}": [] for part in range(parts)}
        for event in kept:
            by_segment[f"orders_{first + min(cut(event), parts - 1)}"].append(event)
        self.oracle.offline |= by_segment
        boundary = self.halves.offline.boundary.advance(end, self.committed)
        stored = [self.row(event, segment) for segment, events in by_segment.items() for event in events]
        self.halves.commit_offline(stored, boundary, **(self.halves.as_stored() if as_stored else {}))

    def latest(self, rows: Iterable[Event]) -> list[Event]:
        """Of each key in a bucket the row that wins."""
        buckets: dict[int | None, list[Event]] = {}
        for row in rows:
            buckets.setdefault(None if row.time is None else row.time // BUCKET, []).append(row)
        return [row for events in buckets.values() for row in self.oracle.live(events)]

    def set_boundary(self) -> None:
        """Anywhere that the offline half covers; or clears it."""
        boundary, until = self.halves.offline.boundary, self.last
        if not self.timed or until is None:
            return
        until = until + 1 if boundary.mode is BoundaryMode.PINOT else boundary.time_ms
        self.override = None if self.dice.random() < 0.3 or until is None else until - self.dice.randrange(5 * BUCKET)
        self.halves.commit_offline([], replace(boundary, override_ms=self.override))

    def replace(self) -> None:
        """A correction of rows that are offline, as rows of a further segment (an upsert table shows the newest)."""
        offline = [event for rows in self.oracle.offline.values() for event in rows if not event.is_delete]
        if not offline or not self.halves.spec.upsert:
            return
        number = len(self.oracle.offline)
        top = max(event.timestamp for event in self.oracle.committed)
        chosen = self.dice.sample(offline, min(2, len(offline)))
        rows = [
            Event((REPLACEMENT_CONNECTOR, replacement_topic(number), 0, 0, place), event.time, event.key,
                  event.comparison, top)
            for place, event in enumerate(chosen)
        ]  # fmt: skip
        self.oracle.offline[f"orders_{number}"] = rows
        self.halves.commit_offline([self.row(event, f"orders_{number}") for event in rows])

    def row(self, event: Event, segment: str | None = None) -> Row:
        bad = {"reason": "bad", "segment": "orders__rejected"} if event.is_bad else {}
        home = segment or f"orders__{event.place[3]}__{event.offset // 7}__20210924T0602Z"
        values = {} if event.is_bad else self.values(event)
        place = {"offset": event.offset, "key": PartitionKey(*event.partition), "timestamp_ms": event.timestamp}
        op = "delete" if event.is_delete else "row"
        return Row(values, None if event.is_bad else event.time, **{**place, "op": op, "segment": home, **bad})

    def values(self, event: Event) -> dict[str, object]:
        gone = {"gone": event.is_delete} if self.halves.spec.upsert else {}
        return {"order_id": event.key, "customer": name_of(event), "amount": 1.5, "ts": event.comparison, **gone}

    def tail(self) -> ListTail:
        from hybrid.query.tail import TailMessage

        return ListTail(
            [
                TailMessage(PartitionKey(*event.partition), event.offset, event.timestamp,
                            b"broken" if event.is_bad else json.dumps(self.values(event)).encode())
                for event in self.oracle.produced
            ]
        )  # fmt: skip


def name_of(event: Event) -> str:
    return "/".join(map(str, event.place))


def check(life: Life, ask: Ask) -> None:
    """All three faces of the table, with and without filters, as the oracle says."""
    low = life.dice.randrange(8 * BUCKET)
    key = life.dice.randrange(6)
    realtime = [event for event in life.oracle.produced if not event.is_bad]
    if life.oracle.upsert:
        realtime = life.oracle.live(realtime)
    offline = [event for rows in life.oracle.offline.values() for event in rows]
    faces = {"orders": life.oracle.visible(limit=life.limit), "orders_REALTIME": realtime, "orders_OFFLINE": offline}
    for table, events in faces.items():
        shown = [event for event in events if not event.is_delete]
        for where, keep in (
            ("", lambda event: True),
            (f"WHERE ts < {low}", lambda event: event.comparison < low),
            (f"WHERE ts >= {low} AND order_id = {key}", lambda event: event.comparison >= low and event.key == key),
        ):
            found = ask(life.halves, f"SELECT customer FROM {table} {where} ORDER BY 1 LIMIT 100000", life.tail())
            expected = sorted(name_of(event) for event in shown if keep(event))
            assert [row[0] for row in found.rows] == expected, (table, where)
        counted = ask(life.halves, f"SELECT count(*) FROM {table}", life.tail()).rows
        assert counted == [(len(shown),)]


def live(folder: Path, ask: Ask, kind: str, seed: int) -> None:
    dedup, pinot = "dedup" in kind, "pinot" in kind
    upsert = dedup or "upsert" in kind
    spec = orders_spec(upsert=upsert, deletes=upsert, time_column=None if kind == "timeless" else "ts")
    spec = replace(spec, upsert=UpsertConfig(ARRIVED, first_wins=True)) if dedup else spec
    halves = Halves.create(folder, replace(spec, boundary_lag_ms=LAG), BoundaryMode.PINOT if pinot else None)
    life = Life(halves, Oracle(upsert=upsert, dedup=dedup), random.Random(f"{kind}-{seed}"))
    acts = [life.produce, life.commit, life.move, life.replace, life.set_boundary]
    steps = life.dice.choices(acts, [4, 3, 2, 1, 2 if pinot or "set" in kind else 0], k=25)
    for step, _ in groupby(steps):
        step()
        if life.dice.random() < 0.2:
            check(life, ask)
    check(life, ask)


KINDS = ["append", "upsert", "timeless", "append, set", "upsert, set", "append, pinot", "upsert, pinot"]
KINDS += ["dedup", "dedup, set", "dedup, pinot"]


def all_but_one_slow(names: Iterable[str], quick: str) -> list[ParameterSet]:
    """The names as parameters: `make unit` takes one, `make test` all of them."""
    return [pytest.param(name, marks=() if name == quick else pytest.mark.slow) for name in names]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", all_but_one_slow(KINDS, "upsert, set"))
def test_a_table_shows_what_the_oracle_says(tmp_path: Path, ask: Ask, seed: int, kind: str) -> None:
    live(tmp_path, ask, kind, seed)
