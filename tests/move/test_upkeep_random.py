"""Moves, merges, compaction, retention and reverts in any order: after every step queries show what Python lists do."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.errors import ConflictError
from hybrid.lake.log import open_half
from hybrid.lake.workbench import Workbench
from hybrid.move.compaction import run_compaction
from hybrid.move.merging.run import run_merges
from hybrid.move.move import run_move
from hybrid.move.plan import Reach
from hybrid.move.retention.run import run_retention
from hybrid.replace.lineage import EntryState, list_replacements
from hybrid.spec.table_config import CompactionConfig, Half, MergeLevel, MergeType, MoveConfig, UpsertConfig
from tests.move.clocked import DAY
from tests.move.test_merging import Merging, row
from tests.query.halves import KEY, Halves, orders_spec

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KEYS, STEPS = 6, 14
WHERE = "select $segmentName, order_id, amount, ts from orders limit 1000"
Seen = tuple[int, float, int]


@dataclass
class Told:
    """The table as Python has it: rows that are seen, by key on an upsert table, and what keys have reached."""

    upsert: bool
    rows: list[Seen] = field(default_factory=list)
    best: dict[int, tuple[float, Seen | None]] = field(default_factory=dict)

    def add(self, seen: Seen, *, deleted: bool) -> None:
        key, amount, _ = seen
        if not self.upsert:
            self.rows.append(seen)
        elif key not in self.best or amount >= self.best[key][0]:  # of equal ones the later arrival
            self.best[key] = (amount, None if deleted else seen)

    def drop(self, gone: list[Seen]) -> None:
        for seen in gone:
            if self.upsert:
                self.best[seen[0]] = (self.best[seen[0]][0], None)
            else:
                self.rows.remove(seen)

    def seen(self) -> list[Seen]:
        shown = [seen for _, seen in self.best.values() if seen is not None] if self.upsert else self.rows
        return sorted(shown, key=lambda seen: (seen[0], seen[2], seen[1]))


class Random:
    """One table, its model, and the steps that may be taken."""

    def __init__(self, table: Merging, upsert: bool, seed: int) -> None:
        self.table, self.told, self.dice, self.offset = table, Told(upsert), random.Random(seed), 0
        self.done: list[str] = []

    @property
    def steps(self) -> list[Callable[[], object]]:
        upkeep = [self.move, self.move, self.merge, self.retain, self.revert]
        return [self.live, self.live, *upkeep, *([self.compact] if self.told.upsert else [])]

    def live(self) -> None:
        """Rows of the last days come, in any order; of a key that was seen before also older versions."""
        table, rows = self.table, []
        for _ in range(self.dice.randint(2, 5)):
            time = table.now - self.dice.randrange(4 * DAY)
            key = self.dice.randrange(KEYS) if self.told.upsert else self.offset
            old = self.dice.random() < 0.3 and self.told.best.get(key, (0, None))[1] is not None
            amount = float(self.offset // 2 + (0 if old else 100 * (self.offset + 1)))
            deleted = self.told.upsert and self.dice.random() < 0.15
            op = "delete" if deleted else "row"
            rows.append(row(key, time, self.offset, f"orders__0__{self.offset // 8}__x", amount, op=op))
            self.told.add((key, amount, time), deleted=deleted)
            self.offset += 1
        table.halves.realtime = open_half(table.halves.layout.half(Half.REALTIME)).realtime
        table.halves.commit_realtime(rows, offsets={KEY: self.offset})

    def move(self) -> None:
        table = self.table
        run_move(table.bench, table.halves.spec, table.halves.layout, reach=Reach(None))

    def merge(self) -> None:
        table = self.table
        run_merges(table.bench, table.halves.spec, table.halves.layout)

    def compact(self) -> None:
        table = self.table
        run_compaction(table.bench, table.halves.spec, table.halves.layout)

    def retain(self) -> None:
        table = self.table
        before = [tuple(found) for found in table.ask(WHERE)]
        report = run_retention(table.bench, table.halves.spec, table.halves.layout)
        dropped = {name for names in report.segments.values() for name in names}
        self.told.drop([found[1:] for found in before if found[0] in dropped])

    def revert(self) -> None:
        """The newest merge or compaction that stands is taken back, if it can be."""
        standing = [one for one in list_replacements(self.table.halves.layout) if one.state is EntryState.ACTIVE]
        merges = [one for one in standing if one.kind == "merge"]
        if merges:
            try:
                self.table.revert(merges[0].id)
            except ConflictError as error:
                assert "does not exist any more" in str(error) or "has removed rows" in str(error), error

    def take(self) -> None:
        step = self.dice.choice(self.steps)
        self.done.append(step.__name__)
        step()
        self.table.now += self.dice.randrange(DAY)
        assert self.table.ask() == self.told.seen(), self.done


@pytest.fixture
def make(workbench: Workbench, tmp_path: Path) -> Callable[[bool], Merging]:
    def made(upsert: bool) -> Merging:
        merge = MergeType.LATEST if upsert else MergeType.CONCAT
        changes: dict[str, Any] = {
            "move": MoveConfig(DAY, DAY, merge, max_records_per_segment=3),
            "merge_levels": (
                MergeLevel(DAY, 2 * DAY, merge, 5, 12, name="1day"),
                MergeLevel(3 * DAY, 3 * DAY, merge, 9, 30, name="3days"),
            ),
            "retention": {Half.REALTIME: 5 * DAY, Half.OFFLINE: 7 * DAY},
            # By the clock of the machine, which files are written by: at once.
            "compaction": CompactionConfig(-(1 << 53), 20, 1),
        }
        spec = replace(orders_spec(upsert=upsert, deletes=True), **changes)
        spec = replace(spec, upsert=UpsertConfig("amount", "gone")) if upsert else spec
        return Merging(Halves.create(tmp_path, spec), workbench, now=20 * DAY)

    return made


@pytest.mark.parametrize(("upsert", "seed"), [(True, 1), (False, 2)])
def test_queries_show_what_lists_do(make: Callable[[bool], Merging], upsert: bool, seed: int) -> None:
    table = Random(make(upsert), upsert, seed)
    table.live()
    for _ in range(STEPS):
        table.take()
    assert len(set(table.done)) >= 5, "too few kinds of steps: take another seed"
