"""Marks of a timeline: the segments and buckets of a stretch of time, aggregated to a bounded number.

All times are epoch milliseconds, all stretches half-open. Functions on values: they read nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

MARKS_MAX = 400
NAMES_MAX, ENTRIES_MAX = 3, 8
PARTITION_ROWS_MAX = 24
# How many buckets one mark stands for: numbers that divide days, weeks and months evenly.
_FACTORS = (1, 2, 3, 4, 6, 7, 12, 14, 24, 28, 48, 56, 84, 168, 336, 672)


class BucketCondition(StrEnum):
    """The state of a bucket, most urgent first: what a mark of several buckets shows."""

    FAILED = "failed"
    RUNNING = "running"
    MISSING = "missing"
    CORRECTED = "corrected"
    PRESENT = "present"


class SegmentCondition(StrEnum):
    """The state of realtime segments. MOVED: the offline half answers for all their rows; they wait for retention."""

    CONSUMING = "consuming"
    SEALED = "sealed"
    MOVED = "moved"


@dataclass(frozen=True)
class OfflineSegment:
    """A segment of the offline half; `end_ms` is the time of its last row. `entry` is the correction that wrote it."""

    name: str
    start_ms: int
    end_ms: int
    rows: int
    bytes: int
    entry: str | None = None


@dataclass(frozen=True)
class RealtimeSegment:
    """A segment of the realtime half; offsets are half-open. `is_late`: it holds late rows that no move has taken."""

    name: str
    partition: str
    start_ms: int
    end_ms: int
    rows: int
    bytes: int
    start_offset: int | None
    end_offset: int | None
    state: SegmentCondition
    is_late: bool = False


@dataclass(frozen=True)
class Work:
    """Work on a stretch of the offline half: a backfill or a move that runs or failed; `why` is its sentence."""

    start_ms: int
    end_ms: int
    state: BucketCondition
    id: str
    why: str


@dataclass(frozen=True)
class OfflineMark:
    """Buckets of the offline half. `buckets` counts them by state; `names` are a few of their segments."""

    start_ms: int
    end_ms: int
    state: BucketCondition
    buckets: Mapping[str, int]
    rows: int
    bytes: int
    segments: int
    names: tuple[str, ...]
    entries: tuple[str, ...]
    works: tuple[Work, ...]


@dataclass(frozen=True)
class RealtimeMark:
    """Realtime segments of one partition, or of neighbouring ones; `end_ms` is the time of the last row."""

    start_ms: int
    end_ms: int
    state: SegmentCondition
    rows: int
    bytes: int
    segments: int
    late_segments: int
    start_offset: int | None
    end_offset: int | None
    names: tuple[str, ...]


def mark_length_ms(start_ms: int, end_ms: int, bucket_ms: int, marks_max: int = MARKS_MAX) -> int:
    """The length of a mark, so that at most `marks_max` of them, aligned to the epoch, reach over a stretch."""
    for factor in _FACTORS:
        if _marks_over(start_ms, end_ms, bucket_ms * factor) <= marks_max:
            return bucket_ms * factor
    factor = _FACTORS[-1]
    while _marks_over(start_ms, end_ms, bucket_ms * factor) > marks_max:
        factor *= 2
    return bucket_ms * factor


def _marks_over(start_ms: int, end_ms: int, length_ms: int) -> int:
    return -(-end_ms // length_ms) - start_ms // length_ms


def offline_marks(
    segments: Iterable[OfflineSegment],
    works: Iterable[Work],
    window: tuple[int, int],
    bucket_ms: int,
    taken_over: tuple[int, int] | None,
    marks_max: int = MARKS_MAX,
) -> list[OfflineMark]:
    """The offline half in a window, by time. `taken_over`: the stretch in which a bucket without rows is missing."""
    start_ms, end_ms = window
    length_ms = mark_length_ms(start_ms, end_ms, bucket_ms, marks_max)
    drafts: dict[int, _Draft] = defaultdict(_Draft)
    for segment in segments:
        if segment.end_ms >= start_ms and segment.start_ms < end_ms:
            _add_segment(drafts, segment, window, bucket_ms, length_ms)
    for work in works:
        for place in _places((work.start_ms, work.end_ms), window, length_ms):
            drafts[place].works.append(work)
    if taken_over is not None:
        for place in _places(taken_over, window, length_ms):
            first = max(place * length_ms, taken_over[0]) // bucket_ms
            last = -(-min((place + 1) * length_ms, taken_over[1]) // bucket_ms)
            drafts[place].expected = max(0, last - first)
    return [draft.mark(place * length_ms, length_ms, bucket_ms) for place, draft in sorted(drafts.items())]


def _places(stretch: tuple[int, int], window: tuple[int, int], length_ms: int) -> range:
    """The numbers, from the epoch, of the marks that a stretch reaches in a window."""
    low, high = max(stretch[0], window[0]), min(stretch[1], window[1])
    return range(low // length_ms, -(-high // length_ms)) if high > low else range(0)


def _add_segment(
    drafts: dict[int, _Draft], segment: OfflineSegment, window: tuple[int, int], bucket_ms: int, length_ms: int
) -> None:
    """Add a segment to each mark that it reaches; its rows are divided evenly among its buckets."""
    first, last = segment.start_ms // bucket_ms, segment.end_ms // bucket_ms
    count = last - first + 1
    per_mark = length_ms // bucket_ms
    low, high = window[0] // length_ms, (window[1] - 1) // length_ms
    for place in range(max(first // per_mark, low), min(last // per_mark, high) + 1):
        begin, end = max(first, place * per_mark), min(last, (place + 1) * per_mark - 1)
        draft = drafts[place]
        draft.segments += 1
        # Shares of neighbours add up to the whole.
        draft.rows += segment.rows * (end + 1 - first) // count - segment.rows * (begin - first) // count
        draft.bytes += segment.bytes * (end + 1 - first) // count - segment.bytes * (begin - first) // count
        draft.hold(begin, end, per_mark, segment.entry)
        if len(draft.names) < NAMES_MAX:
            draft.names.append(segment.name)


class _Draft:
    """A mark while its parts are added; buckets are numbered from the epoch."""

    def __init__(self) -> None:
        self.rows = self.bytes = self.segments = self.expected = 0
        self.held: set[int] = set()
        self.corrected: set[int] = set()
        self.entries: set[str] = set()
        self.names: list[str] = []
        self.works: list[Work] = []

    def hold(self, first: int, last: int, per_mark: int, entry: str | None) -> None:
        """Note that the buckets from `first` to `last` hold rows. A mark that is full already costs nothing more."""
        if len(self.held) < per_mark:
            self.held.update(range(first, last + 1))
        if entry is not None:
            if len(self.corrected) < per_mark:
                self.corrected.update(range(first, last + 1))
            if len(self.entries) < ENTRIES_MAX:
                self.entries.add(entry)

    def mark(self, start_ms: int, length_ms: int, bucket_ms: int) -> OfflineMark:
        end_ms = start_ms + length_ms
        counts = {
            BucketCondition.PRESENT: len(self.held) - len(self.corrected),
            BucketCondition.CORRECTED: len(self.corrected),
            BucketCondition.MISSING: max(0, self.expected - len(self.held)),
        }
        for work in self.works:
            low, high = max(work.start_ms, start_ms), min(work.end_ms, end_ms)
            counts[work.state] = counts.get(work.state, 0) + max(1, -(-(high - low) // bucket_ms))
        found = {state.value: counts[state] for state in BucketCondition if counts.get(state)}
        state = next((state for state in BucketCondition if state.value in found), BucketCondition.PRESENT)
        return OfflineMark(
            start_ms, end_ms, state, found, self.rows, self.bytes, self.segments,
            tuple(self.names), tuple(sorted(self.entries)), tuple(self.works[:NAMES_MAX]),
        )  # fmt: skip


def partition_rows(partitions: Iterable[str], rows_max: int = PARTITION_ROWS_MAX) -> list[tuple[str, ...]]:
    """The partitions of each row of the lane: one each, or neighbours together where there are more than `rows_max`."""
    names = sorted(set(partitions), key=_partition_order)
    size = -(-len(names) // rows_max) if names else 1
    return [tuple(names[place : place + size]) for place in range(0, len(names), size)]


def _partition_order(name: str) -> tuple[str, int]:
    topic, _, number = name.rpartition("/")
    return topic, int(number) if number.isdigit() else -1


def realtime_marks(
    segments: Sequence[RealtimeSegment], window: tuple[int, int], bucket_ms: int, marks_max: int = MARKS_MAX
) -> list[RealtimeMark]:
    """The realtime segments of one row in a window, by time: each by itself if they are few, else joined by time."""
    start_ms, end_ms = window
    shown = [segment for segment in segments if segment.end_ms >= start_ms and segment.start_ms < end_ms]
    if len(shown) <= marks_max:
        return [_joined([segment]) for segment in sorted(shown, key=lambda one: (one.start_ms, one.name))]
    length_ms = max(1, -(-(end_ms - start_ms) // marks_max))
    if length_ms > bucket_ms:
        length_ms = mark_length_ms(start_ms, end_ms, bucket_ms, marks_max)
    groups: dict[int, list[RealtimeSegment]] = defaultdict(list)
    for segment in shown:
        groups[(max(segment.start_ms, start_ms) - start_ms) // length_ms].append(segment)
    return [_joined(group) for _, group in sorted(groups.items())]


def _joined(group: Sequence[RealtimeSegment]) -> RealtimeMark:
    states = {segment.state for segment in group}
    starts = [segment.start_offset for segment in group if segment.start_offset is not None]
    ends = [segment.end_offset for segment in group if segment.end_offset is not None]
    single = len({segment.partition for segment in group}) == 1
    return RealtimeMark(
        start_ms=min(segment.start_ms for segment in group),
        end_ms=max(segment.end_ms for segment in group),
        state=next(state for state in SegmentCondition if state in states),
        rows=sum(segment.rows for segment in group),
        bytes=sum(segment.bytes for segment in group),
        segments=len(group),
        late_segments=sum(segment.is_late for segment in group),
        start_offset=min(starts) if starts and single else None,
        end_offset=max(ends) if ends and single else None,
        names=tuple(segment.name for segment in group[:NAMES_MAX]),
    )
