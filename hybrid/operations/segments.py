"""Segments of a table: names, rows, times and offsets, and the commits that wrote them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from hybrid.config.table_config import Half
from hybrid.errors import NotFoundError
from hybrid.home.table_ref import TableRef
from hybrid.lake.log_entries import DataFile
from hybrid.operations.segment_origins import Origin, origins_of
from hybrid.runtime.sentence_repr import shown_as
from hybrid.table import columns
from hybrid.table.names import topic_in_name


@shown_as("{0.name}: {0.state}, {0.rows} rows")
@dataclass(frozen=True)
class Segment:
    """One segment. Times are epoch milliseconds of the first and last row, offsets half-open.

    `state` is CONSUMING, SEALED (both realtime) or OFFLINE. `topic` is set where the table reads several topics.
    """

    name: str
    half: str
    state: str
    rows: int
    bytes: int
    files: int
    start_ms: int | None
    end_ms: int | None
    partition: int | None
    start_offset: int | None
    end_offset: int | None
    created_ms: int
    topic: str | None = None


def segments_of(table: TableRef) -> list[Segment]:
    """All segments, offline ones first, each half by name."""
    segments: list[Segment] = []
    for half in (Half.OFFLINE, Half.REALTIME):
        if half in table.spec.halves:
            segments.extend(segments_of_half(table, half))
    return segments


def find_segment(table: TableRef, name: str) -> Segment:
    """A segment by its name; NotFoundError, with a suggestion, for an unknown name."""
    segments = {segment.name: segment for segment in segments_of(table)}
    if name not in segments:
        raise _no_segment(table, name, segments)
    return segments[name]


def segment_origins(table: TableRef, name: str) -> list[Origin]:
    """The commits that wrote to a segment, newest first."""
    return origins_of(table.half(Half(find_segment(table, name).half)), name)


def _no_segment(table: TableRef, name: str, segments: Mapping[str, Segment]) -> NotFoundError:
    from hybrid.replace.merged import merges_since

    merges = merges_since(table.half(Half.OFFLINE), name) if Half.OFFLINE in table.spec.halves else []
    if not merges:
        return NotFoundError.named("Segment", name, segments)
    into = ", ".join(f"'{segment}'" for segment in merges[0].lineage.segments_to)
    return NotFoundError(
        f"Segment '{name}' was merged into {into} by '{merges[0].id}' at {merges[0].created_at}.",
        hint=f"To have it back: hybrid replacement revert {table.name} {merges[0].id}",
    )


def segments_of_half(table: TableRef, half: Half) -> list[Segment]:
    """The segments of a half, by name."""
    snapshot = table.half(half)
    consuming = snapshot.realtime.consuming_names() if half is Half.REALTIME else frozenset[str]()
    by_name: dict[str, list[DataFile]] = defaultdict(list)
    hidden = columns.bookkeeping(table.name)
    for file in snapshot.files:
        if file.segment not in hidden:
            by_name[file.segment].append(file)
    segments = (_segment(name, half, name in consuming, files) for name, files in sorted(by_name.items()))
    stream = table.spec.stream
    if half is Half.OFFLINE or stream is None or len(stream.topics) == 1:
        return list(segments)
    return [replace(segment, topic=topic_in_name(stream, segment.name)) for segment in segments]


def _segment(name: str, half: Half, consuming: bool, files: list[DataFile]) -> Segment:
    realtime = half is Half.REALTIME
    state = "CONSUMING" if consuming else "SEALED" if realtime else "OFFLINE"
    end = _extreme(max, files, "high", columns.OFFSET) if realtime else None
    return Segment(
        name=name,
        half=half.value,
        state=state,
        rows=sum(file.rows for file in files),
        bytes=sum(file.bytes for file in files),
        files=len(files),
        start_ms=_extreme(min, files, "low", columns.TIME),
        end_ms=_extreme(max, files, "high", columns.TIME),
        partition=_extreme(min, files, "low", columns.PARTITION) if realtime else None,
        start_offset=_extreme(min, files, "low", columns.OFFSET) if realtime else None,
        end_offset=None if end is None else end + 1,
        created_ms=min(file.modified_ms for file in files),
    )


def _extreme(pick: Callable[[list[int]], int], files: list[DataFile], side: str, column: str) -> int | None:
    if len(files) == 1:  # as most segments have, of which there may be 100,000
        value = getattr(files[0], side).get(column)
        return value if isinstance(value, int) else None
    values = [value for file in files if isinstance(value := getattr(file, side).get(column), int)]
    return pick(values) if values else None
