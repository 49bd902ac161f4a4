"""What a served table must answer at a revision: by numpy over the events and the corrections, not by the product."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tests.soak.events import PARTITIONS, Event

OFFSET = re.compile(r"kafka/[^/]+/0/(\d+)@(\d+)")
Place = tuple[int, int]


@dataclass(frozen=True)
class Question:
    """A statement over a table, and which rows its WHERE lets through."""

    where: str = ""
    keeps: Callable[["Rows"], np.ndarray] = lambda rows: np.ones(len(rows.k), bool)

    def sql(self, table: str) -> str:
        return (
            f"select p, count(*), sum(v), distinctcount(k) from {table} {self.where} group by p order by p "
            f"limit {PARTITIONS + 1}"
        )


def between(low: int, high: int) -> Question:
    return Question(f"where ts >= {low} and ts < {high}", lambda rows: (rows.ts >= low) & (rows.ts < high))


EVERYTHING = Question()
CORRECTED = Question("where rev > 0", lambda rows: rows.rev > 0)


class Rows(NamedTuple):
    """The rows of one partition by offset. Where `there` is false, no row is: malformed, or removed by a correction."""

    there: np.ndarray
    k: np.ndarray
    v: np.ndarray
    ts: np.ndarray
    rev: np.ndarray


@dataclass(frozen=True)
class Revision:
    """What a response says it was answered from: the OFFLINE version, and the position after each partition's rows.

    An answer that could not see the tail ends where its REALTIME version does: `committed` gives a version's positions.
    """

    offline: int
    positions: tuple[int, ...]

    @classmethod
    def parse(cls, text: str, committed: Sequence[tuple[int, ...]] = ()) -> "Revision":
        version = {half: int(number) for half, number in re.findall(r"(OFFLINE|REALTIME)=(\d+)", text)}
        tail = re.search(r"tail=\{([^}]*)\}", text)
        if tail is None:
            return cls(version["OFFLINE"], committed[version["REALTIME"]])
        positions = {int(partition): int(offset) for partition, offset in OFFSET.findall(tail[1])}
        assert sorted(positions) == list(range(PARTITIONS)), text
        return cls(version["OFFLINE"], tuple(positions[p] for p in range(PARTITIONS)))


@dataclass
class TableOracle:
    """One table's events, and the corrections that were asked for, by the reason that their lineage entries carry."""

    name: str
    upsert: bool
    events: Sequence[Event]
    corrections: dict[str, Mapping[Place, dict | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._base = [self._partition(p) for p in range(PARTITIONS)]
        self._row = {(event.p, event.i): event.row for event in self.events}
        self.rows_under = lru_cache(maxsize=4)(self._rows_under)

    def correct(self, reason: str, segment: str, members: Iterable[Place], revision: int) -> list[dict]:
        """The rows that correct a segment. An append table's lose a tenth and change some keys; an upsert table's
        change some times by so much that they win over other versions of their keys."""
        high = int(segment.split("_")[-2])  # rows with times outside of the segment's name are refused
        corrected = {place: self._corrected(self._row[place], revision, high) for place in members}
        self.corrections[reason] = corrected
        return [row for row in corrected.values() if row is not None]

    def _corrected(self, row: dict, revision: int, high: int) -> dict | None:
        changed = {**row, "rev": revision, "v": row["v"] + revision * 1_000_000}
        if self.upsert:
            # The odd milliseconds keep the times of a key's versions apart.
            # Never back: the move has left out the versions that lost in the segment, so none of them can win.
            time = row["ts"] + 1_800_011 + 5 * revision
            return {**changed, "ts": time} if row["i"] % 5 == 0 and time <= high else changed
        draw = (row["i"] + revision) % 10
        return None if draw == 0 else {**changed, "k": row["k"] + 3_000_000} if draw == 1 else changed

    def answer(self, question: Question, revision: Revision, lineage: Sequence[Mapping]) -> list[list]:
        """The rows of the answer. `lineage` are all entries of the table, newest first."""
        found = []
        for p, rows in enumerate(self.rows_under(self.active(lineage, revision.offline))):
            alive = self._alive(rows, revision.positions[p])
            alive = alive[question.keeps(rows)[alive]]
            if len(alive):
                found.append([p, len(alive), int(rows.v[alive].sum()), len(np.unique(rows.k[alive]))])
        return found

    def visible(self, revision: Revision, lineage: Sequence[Mapping]) -> set[tuple[int, ...]]:
        """Every visible row as (p, i, k, v, ts, rev)."""
        found: set[tuple[int, ...]] = set()
        for p, rows in enumerate(self.rows_under(self.active(lineage, revision.offline))):
            alive = self._alive(rows, revision.positions[p])
            columns = (array[alive].tolist() for array in (rows.k, rows.v, rows.ts, rows.rev))
            found |= {(p, int(i), *values) for i, *values in zip(alive, *columns, strict=True)}
        return found

    def _alive(self, rows: Rows, position: int) -> np.ndarray:
        offsets = np.flatnonzero(rows.there[:position])
        if not self.upsert:
            return offsets
        order = offsets[np.lexsort((rows.ts[offsets], rows.k[offsets]))]
        keys = rows.k[order]
        return order[np.append(keys[1:] != keys[:-1], len(keys) > 0)[: len(keys)]]

    def active(self, lineage: Sequence[Mapping], version: int) -> tuple[tuple[str, str], ...]:
        """(segment, reason) of the corrections that stand at an OFFLINE version."""
        standing: dict[str, str | None] = {}
        before: dict[str, str | None] = {}
        for entry in sorted(lineage, key=lambda entry: entry["version"]):
            if entry["version"] > version:
                break
            (segment,) = entry["segments_from"]
            before[entry["id"]] = standing.get(segment)
            standing[segment] = before[entry["reverts"]] if entry["reverts"] else entry["reason"]
        return tuple(sorted((segment, reason) for segment, reason in standing.items() if reason))

    def _rows_under(self, active: tuple[tuple[str, str], ...]) -> list[Rows]:
        rows = [Rows(*(array.copy() for array in base)) for base in self._base]
        for _, reason in active:
            for (p, i), row in self.corrections[reason].items():
                rows[p].there[i] = row is not None
                for name in ("k", "v", "ts", "rev") if row else ():
                    getattr(rows[p], name)[i] = row[name]
        return rows

    def _partition(self, p: int) -> Rows:
        own = [event.row for event in self.events if event.p == p]
        columns = ([row[name] if row else 0 for row in own] for name in ("k", "v", "ts", "rev"))
        return Rows(np.array([row is not None for row in own], bool), *(np.array(one, np.int64) for one in columns))
