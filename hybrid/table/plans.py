"""The plan of a backfill as values: its buckets with their differences, and the units that are swapped together.

A unit is a connected set of buckets and segments: a segment is swapped whole, and may span several buckets. Times are
epoch milliseconds; a bucket without times is the whole of a table without a time column.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from hybrid.runtime.json_values import instant
from hybrid.runtime.sentence_repr import shown_as_sentence
from hybrid.runtime.text_table import html_table

Span = tuple[int | None, int | None]


class BucketState(StrEnum):
    """The content of a bucket at planning time: no rows, rows, or rows of a correction.

    FAILED: an earlier backfill ended in an error before it reached this bucket.
    """

    MISSING = "missing"
    PRESENT = "present"
    CORRECTED = "corrected"
    FAILED = "failed"


@dataclass(frozen=True)
class Counts:
    """Numbers of rows before and after, and of the differences between them."""

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
    """[`start`, `end`) and what the plan changes in it. `unit` None: nothing; `samples` are a few differences."""

    start: int | None
    end: int | None
    state: BucketState
    counts: Counts
    unit: int | None = None
    samples: Sequence[Mapping[str, object]] = ()


@dataclass(frozen=True)
class WrittenSegment:
    """A segment that a run of the plan writes. `files` are paths under the plan's folder of staged rows."""

    name: str
    rows: int
    bytes: int
    low: int | None
    high: int | None
    files: tuple[str, ...]
    is_new: bool


@dataclass(frozen=True)
class Unit:
    """What one commit swaps: `replaced` segments, with the paths of their files in the half, for the `written` ones.

    `buckets` are indexes into the plan's buckets.
    """

    number: int
    buckets: tuple[int, ...]
    replaced: Mapping[str, tuple[str, ...]]
    written: tuple[WrittenSegment, ...]


@shown_as_sentence
@dataclass(frozen=True)
class Plan:
    """A backfill, planned on version `offline_version` of the OFFLINE Delta table `table_id`.

    `change` describes it in words, `request` is the request itself; `fresh_topic` marks rows that arrive at the swap.
    `checks` are the results of expectations, `failed_checks` the names of the failed ones that prevent a run. `inputs`
    hold path, size and sha256 of each file; `seconds` is how long producing the rows took.
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

    def _repr_html_(self) -> str:
        rows = []
        for bucket in self.buckets:
            counts = bucket.counts
            numbers = (counts.rows_before, counts.rows_after, counts.added, counts.removed, counts.changed)
            rows.append((instant(bucket.start), instant(bucket.end), bucket.state.value, *numbers))
        names = ("start", "end", "state", "rows_before", "rows_after", "added", "removed", "changed")
        return html_table(names, rows, self.sentence)

    @property
    def did_something(self) -> bool:
        """Whether there is something to correct."""
        return bool(self.units)

    @property
    def rows(self) -> int:
        """The number of rows that a run writes."""
        return sum(segment.rows for unit in self.units for segment in unit.written)

    @property
    def bytes(self) -> int:
        """The size of the staged rows in bytes."""
        return sum(segment.bytes for unit in self.units for segment in unit.written)

    def buckets_of(self, unit: Unit) -> list[PlannedBucket]:
        """The buckets that a unit corrects."""
        return [self.buckets[place] for place in unit.buckets]

    def left(self, corrected: Collection[Span]) -> list[Unit]:
        """The units with at least one bucket that is not among the `corrected` ones."""
        return [unit for unit in self.units if any(span(bucket) not in corrected for bucket in self.buckets_of(unit))]

    def to_text(self) -> str:
        """One JSON object."""
        return json.dumps(_plain(self), default=_plain, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> Plan:
        """The inverse of `to_text`."""
        doc = json.loads(text)
        buckets = tuple(_bucket(bucket) for bucket in doc.pop("buckets"))
        units = tuple(_unit(unit) for unit in doc.pop("units"))
        lists = {name: tuple(doc[name]) for name in ("inputs", "checks", "failed_checks", "warnings")}
        return cls(**{**doc, **lists, "buckets": buckets, "units": units})


def span(bucket: PlannedBucket) -> Span:
    """[start, end) of a bucket, as lineage entries name it."""
    return bucket.start, bucket.end


def total(found: Iterable[Counts]) -> Counts:
    """The sum of counts."""
    rows_before = rows_after = added = removed = changed = 0
    columns: dict[str, int] = {}
    for counts in found:
        rows_before, rows_after = rows_before + counts.rows_before, rows_after + counts.rows_after
        added, removed, changed = added + counts.added, removed + counts.removed, changed + counts.changed
        for name, count in counts.changed_columns.items():
            columns[name] = columns.get(name, 0) + count
    return Counts(rows_before, rows_after, added, removed, changed, columns)


def hang_together(pairs: Iterable[tuple[int, str]]) -> list[tuple[tuple[int, ...], tuple[str, ...]]]:
    """Groups connected (bucket, segment) pairs: sorted buckets and segments, in the order of each first bucket."""
    group_of_bucket: dict[int, int] = {}
    group_of_segment: dict[str, int] = {}
    groups: dict[int, tuple[set[int], set[str]]] = {}
    for bucket, segment in pairs:
        group_numbers = {group_of_bucket.get(bucket), group_of_segment.get(segment)} - {None}
        number = min(
            (group for group in group_numbers if group is not None),
            default=len(group_of_bucket) + len(group_of_segment),
        )
        buckets, segments = groups.setdefault(number, (set(), set()))
        for other in group_numbers - {number}:
            assert other is not None
            more_buckets, more_segments = groups.pop(other)
            buckets |= more_buckets
            segments |= more_segments
        buckets.add(bucket)
        segments.add(segment)
        group_of_bucket.update(dict.fromkeys(buckets, number))
        group_of_segment.update(dict.fromkeys(segments, number))
    components = [(tuple(sorted(buckets)), tuple(sorted(segments))) for buckets, segments in groups.values()]
    return sorted(components)


def _plain(value: Any) -> Any:
    return dict(vars(value)) if hasattr(value, "__dict__") else str(value)


def _bucket(doc: dict[str, Any]) -> PlannedBucket:
    state, counts = BucketState(doc.pop("state")), Counts(**doc.pop("counts"))
    return PlannedBucket(state=state, counts=counts, **doc)


def _unit(doc: dict[str, Any]) -> Unit:
    written = tuple(WrittenSegment(**{**segment, "files": tuple(segment["files"])}) for segment in doc["written"])
    replaced = {name: tuple(files) for name, files in doc["replaced"].items()}
    return Unit(doc["number"], tuple(doc["buckets"]), replaced, written)
