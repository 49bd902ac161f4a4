"""A table simulated from one seed: batches, moves, overrides, changed bucket periods and roundings, and deaths between
any two steps.

Only the pure functions act. After every step each produced row is visible once, as the oracle sees it, and T and F have
not fallen.
"""

import random
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pytest

from hybrid.config.table_config import BoundaryMode, MoveConfig
from hybrid.move.plan import Reach, WaitingBuckets, plan_move
from hybrid.schema.rounding import rounded_down
from hybrid.table.boundary import Boundary, PartitionKey
from hybrid.table.buckets import bucket_of
from hybrid.table.effective import EffectiveBoundary, covered_until, effective_boundary
from hybrid.table.names import realtime_sequence
from hybrid.table.ranges import advance, plan_ranges
from hybrid.table.segments import Assigner, Thresholds
from hybrid.table.state import Act, Consuming, OfflineState, RealtimeState, from_user_metadata, to_user_metadata
from tests.oracle import Event, Oracle

ACT = Act("create-0", 0, "create", "")
LIMITS = Thresholds(4, 30, 50)
LAG = 60


@dataclass
class Simulated:
    """The halves as the product keeps them: state as text, as in the log, and rows with their segments."""

    realtime: str = field(default_factory=lambda: to_user_metadata(RealtimeState(ACT)))
    offline: str = field(default_factory=lambda: to_user_metadata(OfflineState(ACT)))
    realtime_rows: list[tuple[str, Event]] = field(default_factory=list)
    offline_rows: list[tuple[int, Event]] = field(default_factory=list)  # with the time that is stored

    @property
    def ingested(self) -> RealtimeState:
        return from_user_metadata(self.realtime)

    @property
    def boundary(self) -> Boundary:
        return from_user_metadata(self.offline).boundary

    @property
    def last(self) -> int | None:
        return max((time for time, _ in self.offline_rows), default=None)

    @property
    def effective(self) -> EffectiveBoundary:
        return effective_boundary(self.boundary, self.last, LAG)

    def visible(self, kafka: list[Event]) -> list[Event]:
        """Offline rows that are shown, realtime rows that are not covered, and the tail (R3)."""
        offsets, effective = self.ingested.offsets, self.effective
        tail = [row for row in kafka if row.offset >= offsets.get(PartitionKey(*row.partition), 0)]
        live = [row for _, row in self.realtime_rows] + tail
        shown = [row for row in live if not effective.covers(row.time, PartitionKey(*row.partition), row.offset)] + [
            row for time, row in self.offline_rows if effective.shows_offline(time)
        ]
        return sorted(shown, key=lambda row: row.place)

    def covered(self, row: Event) -> bool:
        return self.boundary.covers(row.time, PartitionKey(*row.partition), row.offset)


class Dies(Exception):
    """The process is gone; what was not committed never happened."""


class Simulation:
    def __init__(self, seed: int, mode: BoundaryMode, *, rounds: bool) -> None:
        self.rounds = rounds
        self.chance = random.Random(seed)
        self.now = 1000
        self.period, self.rounding = 24, 1
        self.oracle = Oracle()
        self.table = Simulated(offline=to_user_metadata(OfflineState(ACT, Boundary(mode=mode))))
        self.ends: Counter[PartitionKey] = Counter()

    def may_die(self) -> None:
        if self.chance.random() < 0.15:
            raise Dies

    def produce(self) -> None:
        partitions = 1 + self.now // 1100  # partitions are added in time
        for _ in range(self.chance.randrange(6)):
            key = PartitionKey("kafka", "orders", 0, self.chance.randrange(partitions))
            if self.chance.random() < 0.1:
                self.ends[key] += 1  # a hole: a transaction's marker
                continue
            late = self.chance.choice([0, 0, 0, 30, 500, 1500])
            row = Event((*key, self.ends[key]), self.now - late - self.chance.randrange(20), timestamp=self.now)
            self.oracle.produce(row)
            self.ends[key] += 1

    def ingest(self) -> None:
        state = self.table.ingested
        ranges = plan_ranges(state.offsets, self.ends, self.chance.choice([1, 3, 100]))
        rows: list[tuple[str, Event]] = []
        consuming, sequences = dict(state.consuming), dict(state.sequences)
        for piece in ranges:
            key = piece.key
            assigner = Assigner("orders", key, LIMITS, self.now, consuming.get(key), sequences.get(key, 0))
            mine = [row for row in self.oracle.produced if row.partition == key]
            for row in [row for row in mine if piece.start <= row.offset < piece.end]:
                name = assigner.assign(7)
                rows.append((name, row))
                before = consuming.get(key)
                if before is None or before.name != name:
                    before = Consuming(name, realtime_sequence(name), row.offset, 0, 0, self.now)
                    sequences[key] = before.sequence + 1
                consuming[key] = replace(before, rows=before.rows + 1, bytes=before.bytes + 7)
        kept = {key: segment for key, segment in consuming.items() if LIMITS.leave_open(segment, self.now)}
        after = replace(state, offsets=advance(state.offsets, ranges), consuming=kept, sequences=sequences)
        self.may_die()
        self.table.realtime = to_user_metadata(after)  # one commit: rows and offsets
        self.table.realtime_rows += rows
        self.oracle.commit({tuple(piece.key): piece.end for piece in ranges})

    def move(self) -> None:
        before, state = self.table.boundary, from_user_metadata(self.table.offline)
        config, most = MoveConfig(self.period, 10, round_ms=self.rounding), self.chance.choice([1, 2, None])
        waiting = [row for _, row in self.table.realtime_rows if not self.table.covered(row)]
        counts = Counter(
            (bucket_of(row.time, self.period).start, before.time_ms is not None and row.time < before.time_ms)
            for row in waiting
        )
        counted = [WaitingBuckets(start, late, count) for (start, late), count in counts.items()]
        plan = plan_move(config, before, self.table.ingested.offsets, counted, self.now, Reach(most))
        end, due = self.oracle.due(self.now, 10, self.period, most)
        taken = [row for row in waiting if plan.boundary.covers(row.time, PartitionKey(*row.partition), row.offset)]
        assert sorted(row.place for row in taken) == sorted(row.place for row in due)
        assert plan.rows + plan.late_rows == len(taken)
        if not plan.moves_something:
            return
        self.may_die()
        self.table.offline = to_user_metadata(replace(state, boundary=plan.boundary.with_step(config.step_ms)))
        self.table.offline_rows += [(rounded_down(row.time, config.step_ms), row) for row in taken]
        self.oracle.move(end, taken)

    def override(self) -> None:
        """Sets the boundary anywhere that the offline half covers, above or below what was set before; or clears it."""
        state = from_user_metadata(self.table.offline)
        until = covered_until(self.table.boundary, self.table.last)
        wanted = None if until is None or self.chance.random() < 0.4 else until - self.chance.randrange(12)
        self.may_die()
        self.table.offline = to_user_metadata(replace(state, boundary=replace(state.boundary, override_ms=wanted)))

    def change_period(self) -> None:
        """A bucket has a whole number of what is rounded to one time."""
        self.period = self.chance.choice([2, 7, 24, 48])
        self.rounding = self.chance.choice(
            [one for one in (1, 2, 6, 7, 24) if self.period % one == 0] if self.rounds else [1]
        )

    def turn_clock(self) -> None:
        self.now += self.chance.choice([1, 5, 30, 100, -20])

    def step(self) -> None:
        acts = [self.produce] * 4 + [self.ingest] * 3 + [self.move] * 2 + [self.turn_clock] * 2
        acts += [self.change_period, self.override]
        before = self.table.boundary
        with suppress(Dies):  # and starts again: everything it knows is in the log
            self.chance.choice(acts)()
        after = self.table.boundary
        assert before.time_ms is None or after.time_ms >= before.time_ms
        assert all(after.frontier[key] >= offset for key, offset in before.frontier.items())
        assert self.table.visible(self.oracle.produced) == self.oracle.visible()


@pytest.mark.parametrize("mode", BoundaryMode)
@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 12))])
@pytest.mark.parametrize("rounds", [False, True])
def test_every_row_is_seen_once_whatever_happens(seed, mode, rounds):
    simulation = Simulation(seed, mode, rounds=rounds)
    for _ in range(120):
        simulation.step()
    check_segments(simulation.table)
    assert len(simulation.oracle.moved) > 10, "this seed moved nothing and shows nothing"


def check_segments(table: Simulated) -> None:
    """A segment is a run of offsets of one partition, within its thresholds; only the newest may be consuming."""
    by_name: dict[str, list[Event]] = {}
    for name, row in table.realtime_rows:
        by_name.setdefault(name, []).append(row)
    last: dict[PartitionKey, tuple[int, int]] = {}
    for name, rows in sorted(by_name.items(), key=lambda item: (item[1][0].partition, realtime_sequence(item[0]))):
        key = PartitionKey(*rows[0].partition)
        sequence, offsets = realtime_sequence(name), [row.offset for row in rows]
        before = last.get(key, (-1, -1))
        assert sequence == before[0] + 1 and min(offsets) > before[1], "sequences and offsets go on without a gap"
        assert len(rows) <= LIMITS.rows and {row.partition for row in rows} == {tuple(key)}
        last[key] = (sequence, max(offsets))
    for key, segment in table.ingested.consuming.items():
        assert segment.sequence == last[key][0] and segment.rows == len(by_name[segment.name])
