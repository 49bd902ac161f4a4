"""A table's page: its timeline, with both halves in two lanes and the boundary between them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter

from hybrid.api.table import Table
from hybrid.config.table_config import Half
from hybrid.errors import UsageError
from hybrid.home.accounts import reads_only
from hybrid.home.table_ref import FixedTableRef
from hybrid.operations.timeline import OfflineLane, TimelineSource, offline_lane, timeline_source, timeline_works
from hybrid.replace.lineage import ReplacementEntry
from hybrid.rpc.json_views import boundary_view
from hybrid.runtime.json_values import epoch_ms, instant, json_value
from hybrid.serve.console.copies import copies_of
from hybrid.serve.console.page import Json, PageRequest, page
from hybrid.table import timeline_marks
from hybrid.table.timeline_marks import OfflineMark, RealtimeMark, Work, offline_marks, partition_rows, realtime_marks

router = APIRouter(include_in_schema=False)
_ENTRIES_MAX = 20
_WORKS_KEPT_S = 2.0
_TIMES_MAX = 2**53  # what JavaScript counts exactly


@page(router, "/ui/tables/{table}", template="timeline.html", title="Timeline")
def timeline_page(ask: PageRequest, table: str) -> Json:
    """The marks of a window (`start`, `end`: ISO 8601 or epoch milliseconds; all rows without them)."""
    ref = ask.context.pinned(table)
    name, spec = ref.name, ref.spec
    positions = {half: ask.context.open_halves.positions.of(ref, half) for half in Half if half in spec.halves}
    # A changed definition need not commit to a half.
    definition = (tuple(spec.half_names), spec.boundary_lag_ms, spec.move.bucket_ms if spec.move else None)
    moved = (name, definition, positions.get(Half.OFFLINE))  # what was moved or loaded stays while rows arrive
    lane, boundary = ask.context.offline_lanes.get(moved, lambda: _lane_and_boundary(ask, ref))
    versions = (name, definition, *positions.values())
    source = ask.context.timelines.get(versions, lambda: timeline_source(ref, lane))
    segments = copies_of(
        ask.url, "segments", {"table": name}, cli=("segment", "list", name), python=f"hy.table({name!r}).segments()"
    )
    model = {
        "table": name,
        "copies": segments,
        "halves": spec.half_names,
        "time_column": spec.time_column,
        "boundary": boundary,
        "frontier": source.frontier,
        "bucket_ms": source.bucket_ms,
        "timeless_segments": source.timeless,
        "reach": None,
        "window": None,
        "offline": [],
        "realtime": [],
        "corrections": [],
    }
    if source.reach is not None:
        window = window_of(source, ask.parameter("start"), ask.parameter("end"))
        look = int(time.monotonic() / _WORKS_KEPT_S)
        home = ask.context.home.context
        works = ask.context.works.get((*versions, look, reads_only()), lambda: timeline_works(home, ref, source))
        marks = ask.context.marks
        model.update(reach=list(full_window(source)), window=list(window))
        model.update(
            marks.get((Half.OFFLINE, *moved, window, *works), lambda: offline_marks_view(source, works, window))
        )
        model.update(marks.get((Half.REALTIME, *versions, window), lambda: {"realtime": realtime_view(source, window)}))
    return model


def offline_marks_view(source: TimelineSource, works: Sequence[Work], window: tuple[int, int]) -> dict[str, Any]:
    """The marks of the offline lane in a window, and the corrections that they name."""
    marks = offline_marks(source.offline, works, window, source.bucket_ms, source.taken_over)
    used = {entry for mark in marks for entry in mark.entries}
    newest = sorted((source.entries[entry] for entry in used), key=lambda entry: entry.version)[-_ENTRIES_MAX:]
    return {"offline": [offline_view(mark) for mark in marks], "corrections": [_correction(entry) for entry in newest]}


def _lane_and_boundary(ask: PageRequest, table: FixedTableRef) -> tuple[OfflineLane, Json]:
    """What the offline half gives to the timeline. It is kept for as long as that half has no new version.

    The boundary is what the verb of that name answers, of the same version as the marks.
    """
    found = Table(ask.context.home.context, table)
    boundary = json_value(boundary_view(found)) if len(table.spec.halves) == len(Half) else None
    return offline_lane(table), boundary


def full_window(source: TimelineSource) -> tuple[int, int]:
    """All rows with the buckets around them, and at least one bucket after the last."""
    assert source.reach is not None
    start_ms, end_ms = source.reach
    bucket_ms = source.bucket_ms
    return start_ms // bucket_ms * bucket_ms, (end_ms // bucket_ms + 1) * bucket_ms


def window_of(source: TimelineSource, start: str, end: str) -> tuple[int, int]:
    """The window that the parameters name; UsageError for what is no time, or an empty window."""
    full = full_window(source)
    window = moment_ms(start, "start", full[0]), moment_ms(end, "end", full[1])
    if window[0] >= window[1]:
        raise UsageError("start: it is not before end.", hint="Leave both out to see all rows.")
    return window


def moment_ms(text: str, name: str, default: int) -> int:
    """A moment of a parameter in epoch milliseconds; `default` for an empty one."""
    if not text:
        return default
    try:
        value = int(text) if text.lstrip("-").isdigit() else epoch_ms(text)
    except (ValueError, TypeError) as error:
        raise UsageError(f"{name}: '{text[:100]}' is neither ISO 8601 nor epoch milliseconds.") from error
    if abs(value) > _TIMES_MAX:
        raise UsageError(f"{name}: '{text[:100]}' is out of range.")
    return value


def offline_view(mark: OfflineMark) -> Json:
    """One mark of the offline lane."""
    works = [{**vars(work), "state": work.state.value} for work in mark.works]
    return {**vars(mark), "state": mark.state.value, "works": works}


def realtime_view(source: TimelineSource, window: tuple[int, int]) -> list[Json]:
    """The rows of the realtime lane: one for each partition, or for neighbours where there are many."""
    names = [segment.partition for segment in source.realtime]
    rows = partition_rows([*names, *source.frontier])
    marks_max = max(1, timeline_marks.MARKS_MAX // max(1, len(rows)))
    place = {name: number for number, row in enumerate(rows) for name in row}
    segments: list[list[Any]] = [[] for _ in rows]
    for segment in source.realtime:
        segments[place[segment.partition]].append(segment)
    return [
        {
            "partitions": list(row),
            "watermark": source.frontier.get(row[0]) if len(row) == 1 else None,
            "marks": _realtime_marks(realtime_marks(found, window, source.bucket_ms, marks_max)),
        }
        for row, found in zip(rows, segments, strict=True)
    ]


def _realtime_marks(marks: Sequence[RealtimeMark]) -> list[Json]:
    return [{**vars(mark), "state": mark.state.value} for mark in marks]


def _correction(entry: ReplacementEntry) -> Json:
    """A replacement or a backfill's swap that wrote segments of the window."""
    return {
        "id": entry.id,
        "kind": entry.kind,
        "created_at": instant(epoch_ms(entry.created_at)),
        "result": entry.result,
        "reason": entry.reason,
        "user": entry.lineage.user,
        "backfill": entry.lineage.backfill,
    }
