"""The time range that a job covers, or all of OFFLINE. Segments in it that the job does not write are removed.

Without a range a job touches only the segments that it names. A day that is pushed again with fewer segments would
keep the remaining old ones. A job that covers the day removes them in its commit.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hybrid.config.job_spec import COVERS_ALL, COVERS_DAY, JobSpec
from hybrid.config.table_config import TableSpec
from hybrid.errors import ConflictError, DataError, SpecError, UsageError
from hybrid.lake.log_entries import DataFile
from hybrid.replace.stage import StagedRows
from hybrid.schema.moment import parse_moment
from hybrid.table.correction_window import refuse_divided
from hybrid.table.names import time_words

_DAY_MS = 86_400_000
_HOW = "Write FROM/TO, 'day' or 'all'."


@dataclass(frozen=True)
class ReplacedRange:
    """Times from `start_ms` to before `end_ms`. None on both sides is the whole half, rows without times included."""

    start_ms: int | None = None
    end_ms: int | None = None

    @property
    def is_all(self) -> bool:
        """Whether it is the whole half."""
        return self.start_ms is None and self.end_ms is None

    @property
    def edges(self) -> tuple[int, ...]:
        """The start and end times that are set."""
        return tuple(time for time in (self.start_ms, self.end_ms) if time is not None)

    def holds(self, low_ms: int, high_ms: int) -> bool:
        """Whether the range contains both times and all between them."""
        after = self.start_ms is None or self.start_ms <= low_ms
        return after and (self.end_ms is None or high_ms < self.end_ms)

    def touches(self, low_ms: int, high_ms: int) -> bool:
        """Whether the range contains any time from `low_ms` to `high_ms`."""
        before = self.end_ms is None or low_ms < self.end_ms
        return before and (self.start_ms is None or self.start_ms <= high_ms)


def replaced_range(spec: TableSpec, step_ms: int, job: JobSpec, staged: StagedRows) -> ReplacedRange | None:
    """The range that the job covers, or None.

    Without `covers` in the job it is all of a table that consistent pushes refresh, else None. `step_ms` is the
    rounding of times in OFFLINE. SpecError or UsageError for an invalid range of this table; DataError when a row lies
    outside of it.
    """
    if not job.covers and not spec.batch.replaces_all:
        return None
    if not job.covers or job.covers == COVERS_ALL:
        return _all(spec, job)
    if spec.time_field is None:
        raise SpecError(f"{job.source}: '{spec.name}' has no time column, so a job can only cover 'all' of it.")
    stretch = _day(job, staged) if job.covers == COVERS_DAY else _interval(spec, job.covers)
    refuse_divided(spec, step_ms, f"hybrid.covers {job.covers}", *stretch.edges)
    _check_rows(spec, stretch, staged)
    return stretch


def covered_names(
    spec: TableSpec, stretch: ReplacedRange | None, existing: Iterable[DataFile], written: Container[str]
) -> tuple[str, ...]:
    """Segments in the range that are not `written`, sorted by name.

    ConflictError for a segment, written or not, that lies only partly in the range.
    """
    if stretch is None:
        return ()
    if stretch.is_all:
        return tuple(sorted({file.segment for file in existing if file.rows and file.segment not in written}))
    times = _times(existing)
    partly = sorted(name for name, time in times.items() if stretch.touches(*time) and not stretch.holds(*time))
    if partly:
        raise _partly_outside(spec, stretch, partly, times)
    return tuple(sorted(name for name, time in times.items() if stretch.holds(*time) and name not in written))


def _all(spec: TableSpec, job: JobSpec) -> ReplacedRange:
    if spec.move is not None:
        raise SpecError(
            f"{job.source}: a job cannot cover all of '{spec.name}': its OFFLINE half also holds what moves bring. "
            "Cover a stretch of time, or remove consistentDataPush from the table config.",
            hint="hybrid job run ... --covers FROM/TO",
        )
    return ReplacedRange()


def _day(job: JobSpec, staged: StagedRows) -> ReplacedRange:
    times = [time for file in staged.files for time in (file.low, file.high) if time is not None]
    if not times:
        message = "covers the day of its rows, and there are none. Name the stretch of time instead."
        raise UsageError(f"{job.source}: the job {message}", hint="hybrid job run ... --covers FROM/TO")
    start = min(times) // _DAY_MS * _DAY_MS
    return ReplacedRange(start, start + _DAY_MS)


def _interval(spec: TableSpec, text: str) -> ReplacedRange:
    start, slash, end = text.partition("/")
    assert spec.time_field is not None
    if not slash:
        raise UsageError(f"hybrid.covers {text}: this is no stretch of time. {_HOW}")
    low, high = (parse_moment(part, spec.time_field, "hybrid.covers") for part in (start, end))
    if low >= high:
        raise UsageError(f"hybrid.covers {text}: it ends before it begins, or holds nothing. {_HOW}")
    return ReplacedRange(low, high)


def _check_rows(spec: TableSpec, stretch: ReplacedRange, staged: StagedRows) -> None:
    for file in staged.files:
        for time, at in ((file.low, file.low_at), (file.high, file.high_at)):
            if time is not None and not stretch.holds(time, time):
                raise DataError(
                    f"{file.path}{at}: time {time_words(spec, time)} is outside of what the job covers, "
                    f"{_shown(spec, stretch)}. Nothing was changed.",
                    hint="Correct the file, or cover more: hybrid job run ... --covers FROM/TO",
                )


def _times(existing: Iterable[DataFile]) -> Mapping[str, tuple[int, int]]:
    """First and last time of each segment that has times."""
    times: dict[str, tuple[int, int]] = {}
    for file in existing:
        if file.rows and file.times is not None:
            low, high = file.times
            first, last = times.get(file.segment, (low, high))
            times[file.segment] = (min(first, low), max(last, high))
    return times


def _partly_outside(
    spec: TableSpec, stretch: ReplacedRange, names: Sequence[str], times: Mapping[str, tuple[int, int]]
) -> ConflictError:
    low, high = (time_words(spec, time) for time in times[names[0]])
    more = f" (and {len(names) - 1} more: {', '.join(names[1:4])})" if len(names) > 1 else ""
    return ConflictError(
        f"Segment '{names[0]}' holds times from {low} to {high}{more}, partly outside of what the job covers, "
        f"{_shown(spec, stretch)}. Nothing was changed.",
        hint="Cover all of their times: hybrid job run ... --covers FROM/TO",
    )


def _shown(spec: TableSpec, stretch: ReplacedRange) -> str:
    low, high = (time_words(spec, time) for time in stretch.edges)
    return f"{low} to before {high}"
