"""What a changed retention of a table will drop, and when: for `table apply`, by statistics, without a JVM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hybrid.config.retention_json import RETENTION_TASK
from hybrid.config.table_config import Half, TableSpec
from hybrid.home.table_ref import TableRef
from hybrid.move.retention.expiry import count_within_share, expiry_ms, segments_by_age
from hybrid.move.segments import Aged
from hybrid.operations.tasks import crons_of
from hybrid.progress import counted
from hybrid.query.prune import is_covered
from hybrid.runtime.json_values import utc
from hybrid.schema.period import period_text

if TYPE_CHECKING:
    from hybrid.home.home import Home
    from hybrid.lake.log import HalfSnapshot

_RUNS_MAX = 1000
_TIMELESS = (
    "segment stays, because its files do not tell its times.",
    "segments stay, because their files do not tell their times.",
)
_WAITING = (
    "of them waits: it is not sealed, or has rows that have not moved yet.",
    "of them wait: they are not sealed, or have rows that have not moved yet.",
)


def retention_words(home: Home, before: TableSpec, after: TableSpec) -> list[str]:
    """Sentences on what goes of each half whose retention changes. `before` names the halves that have rows."""
    changed = [half for half in Half if before.retention.get(half) != after.retention.get(half)]
    table = TableRef(before, home.layout(before.name))
    return [_words(home, table, after, half) for half in changed if half in before.halves]


def _words(home: Home, table: TableRef, after: TableSpec, half: Half) -> str:
    if half not in after.retention:
        return f"{half} keeps its rows for ever: retention drops none any more."
    now_ms, keeps_ms = home.now_ms(), after.retention[half]
    snapshot, name = table.half(half), f"Retention of {half} ({period_text(keeps_ms)})"
    before_ms = expiry_ms(half, snapshot, now_ms, keeps_ms)
    segments = segments_by_age(table.name, half, snapshot)
    expired = [segment for segment in segments if segment.ends_before(before_ms)]
    unknown = sum(segment.high is None for segment in segments)
    stay = f" {_plural(unknown, _TIMELESS)}" if unknown else ""
    if not expired:
        return f"{name} drops nothing now; {_first(segments, keeps_ms)}.{stay}"
    rows = sum(segment.rows for segment in expired)
    waiting = _waiting(table, half, snapshot, expired)
    words = f"{name} will drop {len(expired)} of {counted(len(segments), 'segment')} with {counted(rows, 'row')}"
    ready = [segment for segment in expired if segment.name not in waiting]
    total = sum(segment.rows for segment in segments)
    when = _when(after, now_ms, _runs(ready, total, home.settings.retention_share_max))
    why = f" {_plural(len(waiting), _WAITING)}" if waiting else ""
    return f"{words}, {when}.{why}{stay}"


def _first(segments: Sequence[Aged], keeps_ms: int) -> str:
    """The segment that expires first."""
    first = next((segment for segment in segments if segment.high is not None), None)
    if first is None or first.high is None:
        return "it holds no rows with times"
    return f"the first of {counted(len(segments), 'segment')}, of {counted(first.rows, 'row')}, expires at " + utc(
        first.high + keeps_ms + 1
    )


def _plural(count: int, words: tuple[str, str]) -> str:
    one, several = words
    return f"1 {one}" if count == 1 else f"{count} {several}"


def _waiting(table: TableRef, half: Half, snapshot: HalfSnapshot, expired: Sequence[Aged]) -> set[str]:
    """The names of expired realtime segments that stay for now: not sealed, or not all of their rows have moved."""
    if half is not Half.REALTIME:
        return set()
    consuming, boundary = snapshot.realtime.consuming_names(), table.effective_boundary()
    partitions = sorted({*snapshot.realtime.offsets, *boundary.frontier}) if boundary is not None else []
    unmoved = {
        file.segment
        for file in snapshot.files
        if boundary is not None and not is_covered(table.spec, file, boundary, partitions)
    }
    return {segment.name for segment in expired if segment.name in consuming or segment.name in unmoved}


def _runs(expired: Sequence[Aged], total: int, share_max: float) -> int:
    """How many scheduled runs it takes: each drops the oldest segments, at most a share of the half's rows."""
    runs, place = 0, 0
    while place < len(expired) and runs < _RUNS_MAX:
        count = count_within_share(expired[place:], total, share_max)
        total -= sum(segment.rows for segment in expired[place : place + count])
        place, runs = place + count, runs + 1
    return runs


def _when(spec: TableSpec, now_ms: int, runs: int) -> str:
    by_hand = f"hybrid task run {spec.name} {RETENTION_TASK}"
    cron = crons_of(spec).get(RETENTION_TASK)
    first_ms = last_ms = cron.next_after(now_ms) if cron is not None else None
    if cron is None or first_ms is None:
        return f"when somebody runs: {by_hand}"
    for _ in range(runs - 1):
        last_ms = cron.next_after(last_ms) if last_ms is not None else None
    if runs <= 1 or last_ms is None:
        return f"at {utc(first_ms)} on a server, or at once by: {by_hand}"
    return f"in {runs} runs from {utc(first_ms)} to {utc(last_ms)} on a server, or at once by: {by_hand}"
