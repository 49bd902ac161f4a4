"""The plan of a backfill, as values: what it found bucket by bucket, and what must be swapped together.

A unit is a set of buckets and segments that hang together: a segment is swapped whole, and may reach over several
buckets. Times are epoch milliseconds; a bucket without times is the whole of a table without a time column.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Span = tuple[int | None, int | None]


class BucketState(StrEnum):
    """What stood in a bucket when it was planned: no rows, rows, a correction's rows.

    FAILED: an earlier backfill ended in an error before it came to this bucket.
    """

    MISSING = "missing"
    PRESENT = "present"
    CORRECTED = "corrected"
    FAILED = "failed"


@dataclass(frozen=True)
class Counts:
    """Rows before and after, and how they differ."""

    rows_before: int = 0
    rows_after: int = 0
    added: int = 0
    removed: int = 0
    changed: int = 0
    changed_columns: Mapping[str, int] = field(default_factory=dict)

    @property
    def differs(self) -> bool:
        """Whether a row was added, removed or changed."""
        return bool(self.added or self.removed or self.changed)


@dataclass(frozen=True)
class PlannedBucket:
    """[`start`, `end`) and what the plan does in it. `unit` None: nothing; `samples` show a few of the differences."""

    start: int | None
    end: int | None
    state: BucketState
    counts: Counts
    unit: int | None = None
    samples: Sequence[Mapping[str, object]] = ()


@dataclass(frozen=True)
class WrittenSegment:
    """A segment as the plan would write it. `files` are paths under the plan's folder of rows."""

    name: str
    rows: int
    bytes: int
    low: int | None
    high: int | None
    files: tuple[str, ...]
    is_new: bool


@dataclass(frozen=True)
class Unit:
    """What is swapped in one commit: `replaced` segments, by their data files' paths in the half, and what is written.

    `buckets` are places in the plan's list.
    """

    number: int
    buckets: tuple[int, ...]
    replaced: Mapping[str, tuple[str, ...]]
    written: tuple[WrittenSegment, ...]


@dataclass(frozen=True)
class Plan:
    """A backfill as it was planned on `offline_version` of the OFFLINE Delta table `table_id`.

    `change` says in words what it does, `request` how it was asked for; `fresh_topic` marks rows that arrive at the
    swap. `checks` are the results of expectations, `failed_checks` the names of those that stop a run. `inputs` hold
    path, size and sha256 of each file; `seconds` is what making the rows took.
    """

    id: str
    table: str
    created_at: str
    change: str
    request: Mapping[str, object]
    table_id: str
    offline_version: int
    realtime_version: int | None
    base_revision: str
    fresh_topic: str
    buckets: tuple[PlannedBucket, ...]
    units: tuple[Unit, ...]
    inputs: tuple[Mapping[str, object], ...] = ()
    checks: tuple[Mapping[str, object], ...] = ()
    failed_checks: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    sentence: str = ""
    seconds: float = 0.0
    reason: str | None = None
    user: str | None = None

    @property
    def rows(self) -> int:
        """How many rows a run writes."""
        return sum(segment.rows for unit in self.units for segment in unit.written)

    @property
    def bytes(self) -> int:
        """How many bytes the staged rows take."""
        return sum(segment.bytes for unit in self.units for segment in unit.written)

    def buckets_of(self, unit: Unit) -> list[PlannedBucket]:
        """The buckets that a unit corrects."""
        return [self.buckets[place] for place in unit.buckets]

    def left(self, corrected: Collection[Span]) -> list[Unit]:
        """The units of which a bucket is not among the `corrected` ones."""
        return [unit for unit in self.units if any(span(one) not in corrected for one in self.buckets_of(unit))]

    def to_text(self) -> str:
        """One JSON object."""
        return json.dumps(_plain(self), default=_plain, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> Plan:
        """The inverse of `to_text`."""
        doc = json.loads(text)
        buckets = tuple(_bucket(one) for one in doc.pop("buckets"))
        units = tuple(_unit(one) for one in doc.pop("units"))
        lists = {name: tuple(doc[name]) for name in ("inputs", "checks", "failed_checks", "warnings")}
        return cls(**{**doc, **lists, "buckets": buckets, "units": units})


def span(bucket: PlannedBucket) -> Span:
    """[start, end) of a bucket, as lineage entries name it."""
    return bucket.start, bucket.end


def total(found: Iterable[Counts]) -> Counts:
    """The sum of counts."""
    rows_before = rows_after = added = removed = changed = 0
    columns: dict[str, int] = {}
    for one in found:
        rows_before, rows_after = rows_before + one.rows_before, rows_after + one.rows_after
        added, removed, changed = added + one.added, removed + one.removed, changed + one.changed
        for name, count in one.changed_columns.items():
            columns[name] = columns.get(name, 0) + count
    return Counts(rows_before, rows_after, added, removed, changed, columns)


def hang_together(pairs: Iterable[tuple[int, str]]) -> list[tuple[tuple[int, ...], tuple[str, ...]]]:
    """Groups (bucket, segment) pairs: each group's buckets and segments, sorted, in the order of its first bucket."""
    group_of_bucket: dict[int, int] = {}
    group_of_segment: dict[str, int] = {}
    groups: dict[int, tuple[set[int], set[str]]] = {}
    for bucket, segment in pairs:
        known = {group_of_bucket.get(bucket), group_of_segment.get(segment)} - {None}
        number = min((one for one in known if one is not None), default=len(group_of_bucket) + len(group_of_segment))
        buckets, segments = groups.setdefault(number, (set(), set()))
        for other in known - {number}:
            assert other is not None
            more_buckets, more_segments = groups.pop(other)
            buckets |= more_buckets
            segments |= more_segments
        buckets.add(bucket)
        segments.add(segment)
        group_of_bucket.update(dict.fromkeys(buckets, number))
        group_of_segment.update(dict.fromkeys(segments, number))
    found = [(tuple(sorted(buckets)), tuple(sorted(segments))) for buckets, segments in groups.values()]
    return sorted(found)


def _plain(value: Any) -> Any:
    return dict(vars(value)) if hasattr(value, "__dict__") else str(value)


def _bucket(doc: dict[str, Any]) -> PlannedBucket:
    state, counts = BucketState(doc.pop("state")), Counts(**doc.pop("counts"))
    return PlannedBucket(state=state, counts=counts, **doc)


def _unit(doc: dict[str, Any]) -> Unit:
    written = tuple(WrittenSegment(**{**one, "files": tuple(one["files"])}) for one in doc["written"])
    replaced = {name: tuple(files) for name, files in doc["replaced"].items()}
    return Unit(doc["number"], tuple(doc["buckets"]), replaced, written)
