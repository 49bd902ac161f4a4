"""Moves, merges, compaction, retention, replacements and reverts in any order, in both boundary modes: after every step
queries show what Python lists do.

Upkeep leaves alone what is seen, but for retention, which takes what lies in the segments that it drops. What new rows
and corrections change is found with Python's lists over the stored rows. HYBRID_SEEDS=20 plays more lives.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hybrid.config.table_config import (
    ARRIVED,
    BoundaryMode,
    CompactionConfig,
    Half,
    MergeLevel,
    MergeType,
    MoveConfig,
    UpsertConfig,
)
from hybrid.errors import ConflictError
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.log import open_half
from hybrid.move.compaction import run_compaction
from hybrid.move.merging.run import run_merges
from hybrid.move.move import run_move
from hybrid.move.plan import Reach
from hybrid.move.retention.run import run_retention
from hybrid.replace.ending import end_replacement
from hybrid.replace.job import run_job
from hybrid.replace.lineage import EntryState, list_replacements
from hybrid.replace.opening import open_replacement
from hybrid.table.boundary import Boundary, PartitionKey
from hybrid.table.columns import ARRIVAL, bookkeeping
from hybrid.table.effective import EffectiveBoundary
from tests.move.clocked import DAY
from tests.move.test_merging import Merging, row
from tests.query.halves import KEY, Halves, orders_spec
from tests.replace.tables import Table

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KEYS, STEPS = 6, 8  # each step once at least, after the first rows and their move
WHERE = "select $segmentName, order_id, amount, ts from orders limit 1000"
UPSERTS = {
    "upsert": UpsertConfig("amount", "gone", deleted_keys_ttl=1500),
    "dedup": UpsertConfig(ARRIVED, first_wins=True),
}
Seen = tuple[int, float, int]


@dataclass(frozen=True)
class Stored:
    """A row as it lies in a file: what is seen of it, when it arrived, where it lies."""

    seen: Seen
    arrival: tuple[Any, ...]
    deleted: bool
    segment: str = ""

    @property
    def key(self) -> int:
        return self.seen[0]

    def covered_by(self, boundary: Boundary | EffectiveBoundary) -> bool:
        return boundary.covers(self.seen[2], PartitionKey(*self.arrival[1:5]), self.arrival[5])


def shown(kind: str, rows: Iterable[Stored]) -> list[Seen]:
    """What is seen of visible rows."""
    found = list(rows)
    if kind != "append":
        found.sort(key=lambda one: one.arrival if kind == "dedup" else (one.seen[1], *one.arrival))
        found = list({one.key: one for one in (reversed(found) if kind == "dedup" else found)}.values())
    seen = [one.seen for one in found if not one.deleted]
    return sorted(seen, key=lambda one: (one[0], one[2], one[1]))


class Random:
    """One table, what is seen of it, and the steps that may be taken."""

    def __init__(self, table: Merging, kind: str, seed: int, folder: Path) -> None:
        self.table, self.kind, self.dice, self.offset = table, kind, random.Random(f"{kind} {seed}"), 0
        self.jobs = Table(table.bench, table.halves.spec, table.halves.layout, folder)
        self.seen: list[Seen] = []
        self.done: list[str] = []
        self.pack: list[Callable[[], object]] = []

    @property
    def steps(self) -> list[Callable[[], object]]:
        upkeep = [self.move, self.merge, self.retain, self.revert, self.correct, self.correct]
        return [self.live, *upkeep, *([self.compact] if self.kind in UPSERTS else [])]

    def shown(self, rows: Iterable[Stored]) -> list[Seen]:
        """What is seen of visible rows."""
        return shown(self.kind, rows)

    def half(self, half: Half) -> Any:
        return open_half(self.table.halves.layout.half(half))

    def stored(self, half: Half) -> list[Stored]:
        """All rows of a half, as its files hold them."""
        found = []
        for file in self.half(half).files:
            if file.segment not in bookkeeping("orders"):
                for one in pq.ParquetFile(file.path).read().to_pylist():
                    seen = (one["order_id"], one["amount"], one["ts"])
                    arrival = tuple(one[name] for name in ARRIVAL)
                    found.append(Stored(seen, arrival, one["_hy_op"] == "delete", file.segment))
        return found

    def visible(self, offline: Iterable[Stored]) -> list[Stored]:
        """The rows that the boundary leaves, with these for OFFLINE's."""
        boundary = self.half(Half.OFFLINE).effective_boundary(self.table.halves.spec.boundary_lag_ms)
        left = [one for one in self.stored(Half.REALTIME) if not one.covered_by(boundary)]
        return [*(one for one in offline if boundary.shows_offline(one.seen[2])), *left]

    def live(self) -> None:
        """Rows of the last days come, in any order; some of one time of Kafka's."""
        table, rows = self.table, []
        for _ in range(self.dice.randint(2, 5)):
            time = table.now - self.dice.randrange(4 * DAY)
            key = self.offset if self.kind == "append" else self.dice.randrange(KEYS)
            amount = float(self.offset // 2 + (0 if self.dice.random() < 0.3 else 100 * (self.offset + 1)))
            op = "delete" if self.kind in ("upsert", "partial") and self.dice.random() < 0.15 else "row"
            segment, arrived = f"orders__0__{self.offset // 8}__x", self.offset // 3
            rows.append(row(key, time, self.offset, segment, amount, op=op, timestamp_ms=arrived))
            self.offset += 1
        table.halves.realtime = self.half(Half.REALTIME).realtime
        table.halves.commit_realtime(rows, offsets={KEY: self.offset}, timestamp_max=self.offset // 3)
        self.seen = self.shown(self.visible(self.stored(Half.OFFLINE)))

    def move(self) -> None:
        """The limit of mode pinot follows the moved rows, and shows corrections that lay past it."""
        table, before = self.table, self.half(Half.OFFLINE).offline.boundary
        offline, realtime = self.stored(Half.OFFLINE), self.stored(Half.REALTIME)
        run_move(table.halves.context(table.bench), reach=Reach(None))
        after = self.half(Half.OFFLINE).offline.boundary
        moved = [one for one in realtime if one.covered_by(after) and not one.covered_by(before)]
        seen = self.shown(self.visible([*offline, *moved]))
        assert seen == self.seen or before.mode is BoundaryMode.PINOT
        self.seen = seen

    def merge(self) -> None:
        table = self.table
        run_merges(table.halves.context(table.bench))

    def compact(self) -> None:
        table = self.table
        run_compaction(table.halves.context(table.bench))

    def retain(self) -> None:
        table = self.table
        before = [tuple(found) for found in table.ask(WHERE)]
        report = run_retention(table.halves.context(table.bench))
        dropped = {name for names in report.segments.values() for name in names}
        for found in before:
            if found[0] in dropped:
                self.seen.remove(found[1:])  # type: ignore[arg-type]

    def correct(self) -> None:
        """A segment of OFFLINE gets other rows, by a job or by Pinot's protocol; at times it is taken back at once."""
        stored, before = self.stored(Half.OFFLINE), list(self.seen)
        if not stored:
            return
        segment = self.dice.choice(sorted({one.segment for one in stored}))
        old = [one for one in stored if one.segment == segment]
        kept = list({one.key: one.seen for one in old if self.dice.random() < 0.7}.values())
        new = [(key, amount + self.dice.choice([0, 0, 1]), ts) for key, amount, ts in kept]
        if self.dice.random() < 0.3 or not new:
            fresh = 1000 + len(self.done) if self.kind == "append" else self.dice.randrange(2 * KEYS)
            new = [one for one in new if one[0] != fresh] + [(fresh, float(self.offset), old[0].seen[2])]
        outside = [one for one in stored if one.segment != segment]
        arrived = [self._arrival(one, old, place) for place, one in enumerate(new)]
        come = [Stored(one, arrival, deleted=False) for one, arrival in zip(new, arrived, strict=True)]
        act = self._replace(segment, new)
        if act is None:  # it changes nothing
            return
        self.seen = self.shown(self.visible([*outside, *come, *self._removed(old, new)]))
        self._take_back_at_times(segment, act, before)

    def _take_back_at_times(self, segment: str, act: str, before: list[Seen]) -> None:
        """A correction was made of a segment; it stays, or is reverted at once."""
        self.done[-1] += f" {segment}"
        if self.dice.random() < 0.4:
            assert self.table.ask() == self.seen, self.done
            self.table.revert(act)
            self.done[-1] += " and back"
            self.seen = before

    def _winner(self, rows: Iterable[Stored], key: int) -> Stored | None:
        mine = [one for one in rows if one.key == key]
        if self.kind == "dedup":
            return min(mine, key=lambda one: one.arrival, default=None)
        return max(mine, key=lambda one: (one.seen[1], *one.arrival), default=None)

    def _arrival(self, seen: Seen, old: Iterable[Stored], place: int) -> tuple[Any, ...]:
        """After all that is there; on a dedup table in the place of the row that goes."""
        first = self._winner(old, seen[0]) if self.kind == "dedup" else None
        return first.arrival if first is not None else (self.offset // 3, "~replacement", "act-9", 0, 0, place)

    def _removed(self, old: Iterable[Stored], new: Iterable[Seen]) -> list[Stored]:
        """The delete markers that keys leave."""
        if self.kind == "append":
            return []
        gone = {one.key for one in old} - {key for key, _, _ in new}
        winners = [self._winner(old, key) for key in gone]
        return [replace(one, deleted=True) for one in winners if one is not None]

    def _replace(self, segment: str, rows: Iterable[Seen]) -> str | None:
        self.jobs.write_rows([{"order_id": key, "amount": amount, "ts": ts} for key, amount, ts in rows])
        table = self.table.halves.context(self.table.bench)
        if self.dice.random() < 0.5:
            return run_job(table, self.jobs.job(segment)).act
        new = f"pushed_{len(self.done)}"
        entry = open_replacement(table.spec, table.layout, ([segment], [new]), created_at=table.bench.now_iso())
        run_job(table, self.jobs.job(new))
        return end_replacement(table, entry).act

    def revert(self) -> None:
        """The newest merge or compaction that stands is taken back, if it can be."""
        standing = [one for one in list_replacements(self.table.halves.layout) if one.state is EntryState.ACTIVE]
        merges = [one for one in standing if one.kind == "merge"]
        if merges:
            try:
                self.table.revert(merges[0].id)
            except ConflictError as error:
                known = ("does not exist any more", "has removed rows", "Revert the newer one", "rewritten")
                assert any(one in f"{error} {error.hint}" for one in known), error

    def take(self, step: Callable[[], object] | None = None) -> None:
        if step is None:  # as from a pack of cards, so that none is left out for long
            self.pack = self.pack or self.dice.sample(self.steps, len(self.steps))
            step = self.pack.pop()
        self.done.append(step.__name__)
        step()
        assert self.table.ask() == self.seen, self.done
        self.table.now += self.dice.randrange(DAY)


@pytest.fixture
def make(workbench: CommitContext, tmp_path: Path) -> Callable[[str, BoundaryMode], Merging]:
    def made(kind: str, mode: BoundaryMode) -> Merging:
        merge = MergeType.CONCAT if kind == "append" else MergeType.LATEST
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
        spec = replace(orders_spec(upsert=kind != "append", deletes=True), **changes)
        spec = replace(spec, upsert=UPSERTS.get(kind))
        return Merging(Halves.create(tmp_path, spec, mode), workbench, now=20 * DAY)

    return made


LIVES = [
    ("upsert", BoundaryMode.EXACT, 1),
    ("dedup", BoundaryMode.EXACT, 2),
    ("append", BoundaryMode.EXACT, 3),
    ("upsert", BoundaryMode.PINOT, 4),
    ("dedup", BoundaryMode.PINOT, 5),
    ("append", BoundaryMode.PINOT, 6),
]
MORE = [
    (kind, mode, seed) for kind, mode, _ in LIVES for seed in range(10, 10 + int(os.environ.get("HYBRID_SEEDS", 0)))
]


@pytest.mark.parametrize(("kind", "mode", "seed"), [*LIVES, *MORE])
def test_queries_show_what_lists_do(
    make: Callable[[str, BoundaryMode], Merging], tmp_path: Path, kind: str, mode: BoundaryMode, seed: int
) -> None:
    table = Random(make(kind, mode), kind, seed, tmp_path / "jobs")
    table.take(table.live)
    table.take(table.move)
    for _ in range(STEPS):
        table.take()
