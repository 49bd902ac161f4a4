"""A table that folds gives one answer wherever its rows lie: in the tail, in REALTIME, in one offline segment or three.

Moves and merges keep every row; retention keeps the delete markers whose keys still have rows.
"""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.table_config import Half, MergeLevel, MoveConfig, Partial, Strategy, TableSpec, UpsertConfig
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.table_context import TableContext
from hybrid.move.merging.run import run_merges
from hybrid.move.move import run_move
from hybrid.move.plan import Reach
from hybrid.move.retention.run import run_retention
from hybrid.query.engine import QueryOptions, run
from hybrid.query.tail import TailMessage
from hybrid.table.boundary import PartitionKey
from tests.folding import folded, folding_spec, some_values
from tests.move.clocked import DAY, Clocked
from tests.oracle import Event
from tests.query.halves import KEY, Halves, ListTail, Row, orders_spec
from tests.query.stepped import SteppedCache

OTHER = PartitionKey("kafka", "orders", 0, 1)
DAYS = 3


class Folding(Clocked):
    """A table whose rows are folded; `events` are all there are."""

    events: list[Event]

    def row(self, event: Event, segment: str = "orders__0__0__20210924T0602Z") -> Row:
        values: Any = event.payload
        op = "delete" if event.is_delete else "row"
        key = PartitionKey(*event.partition)
        home = f"{segment[:8]}{key.partition}{segment[9:]}"
        return Row(values, event.time, event.offset, key, event.timestamp, op, home)

    def tail(self) -> ListTail:
        return ListTail(
            [
                TailMessage(PartitionKey(*one.partition), one.offset, one.timestamp, json.dumps(one.payload).encode())
                for one in self.events
            ]
        )

    def check(self, where: str) -> None:
        """As the oracle says, from the files and from the cache."""
        names = sorted(self.halves.spec.schema.column_names)
        wanted = sorted(repr(tuple(row[name] for name in names)) for row in folded(self.halves.spec, self.events))
        sql = "select * from orders limit 1000"
        found = run(sql, self.halves, QueryOptions(tail=self.tail(), now_ms=lambda: self.now))
        assert sorted(repr(tuple(one)) for one in found.rows) == wanted, where
        cached = SteppedCache(self.halves, self.now, self.tail()).ask(sql)
        assert cached is not None and sorted(repr(tuple(one)) for one in cached.rows) == wanted, where

    def stored(self) -> int:
        options = QueryOptions(tail=ListTail(), now_ms=lambda: self.now)
        (count,) = run("select count(*) from orders_OFFLINE", self.halves, options).rows[0]
        return int(count)


def some_events(dice: random.Random, spec: TableSpec, count: int) -> list[Event]:
    """In two partitions, at times of some days, with clocks that jump."""
    found = []
    for offset in range(count):
        for key in (KEY, OTHER):
            ts, of, gone = dice.randrange(DAYS * DAY), dice.randrange(5), dice.random() < 0.1
            payload = some_values(dice, spec, of, ts, gone)
            found.append(Event((*key, offset), ts, of, ts, dice.randrange(50), gone, payload=payload))
    return found


@pytest.mark.spark
@pytest.mark.parametrize("several", [False, True])
def test_the_same_answer_wherever_the_rows_are(workbench: CommitContext, tmp_path: Path, several: bool) -> None:
    dice = random.Random(f"moved-{several}")
    move = MoveConfig(bucket_ms=DAY, buffer_ms=0)
    level = MergeLevel(bucket_ms=100 * DAY, buffer_ms=0, name="all")
    spec = replace(folding_spec(dice, several=several), move=move, merge_levels=(level,))
    table = Folding(Halves.create(tmp_path, spec), workbench, now=200 * DAY)
    table.events = some_events(dice, spec, 30)
    table.check("in the tail")
    half = [event for event in table.events if event.offset < 20]
    table.halves.commit_realtime([table.row(event) for event in half], offsets={KEY: 20, OTHER: 20})
    table.check("in REALTIME and the tail")
    rest = [event for event in table.events if event.offset >= 20]
    table.halves.commit_realtime([table.row(event) for event in rest], offsets={KEY: 30, OTHER: 30})
    table.check("in REALTIME")
    for day in range(DAYS):
        report = run_move(TableContext(table.bench, spec, table.halves.layout), reach=Reach(1))
        assert report.moved, report.sentence
        table.check(f"moved up to day {day}")
    rows = sum(not event.is_delete for event in table.events)
    assert table.stored() == rows, "every row is kept"
    merged = run_merges(TableContext(table.bench, spec, table.halves.layout))
    assert merged.committed, merged.sentence
    table.check("merged")
    assert table.stored() == rows


@pytest.mark.spark
def test_a_delete_marker_stays_while_a_row_of_its_key_does(workbench: CommitContext, tmp_path: Path) -> None:
    """The row it took away came before it and has a later time, so it expires later."""
    spec = replace(
        orders_spec(upsert=True, deletes=True),
        upsert=UpsertConfig("amount", "gone", partial=Partial({"customer": Strategy.IGNORE})),
        null_handling=True,
        retention={Half.OFFLINE: 8 * DAY, Half.REALTIME: 1 * DAY},
    )
    table = Folding(Halves.create(tmp_path, spec), workbench)
    events = [_event(0, 1, 9 * DAY, 1.0), _event(1, 1, DAY, 2.0, gone=True), _event(2, 2, DAY, 1.0, gone=True)]
    table.events = [*events, _event(3, 3, DAY, 1.0), _event(4, 3, 9 * DAY, 2.0)]
    table.halves.commit_realtime([table.row(event) for event in table.events], offsets={KEY: 5})
    moved = {"old": [1, 2, 3], "new": [0, 4]}
    rows = [replace(table.row(table.events[n]), segment=name) for name, chosen in moved.items() for n in chosen]
    boundary = table.halves.offline.boundary.advance(10 * DAY, {KEY: 5})
    table.halves.commit_offline(rows, boundary)
    shown = "select order_id, customer from orders order by 1"
    options = QueryOptions(tail=ListTail(), now_ms=lambda: table.now)
    assert [tuple(one) for one in run(shown, table.halves, options).rows] == [(3, "c3")]
    report = run_retention(TableContext(table.bench, spec, table.halves.layout))
    assert "1 delete marker" in report.sentence, report.sentence
    assert [tuple(one) for one in run(shown, table.halves, options).rows] == [(3, "c4")], "its first row has expired"


def _event(offset: int, key: int, ts: int, amount: float, gone: bool = False) -> Event:
    payload = {"order_id": key, "customer": f"c{offset}", "amount": amount, "ts": ts, "gone": gone}
    return Event((*KEY, offset), ts, key, amount, is_delete=gone, payload=payload)
