"""Plans a backfill: corrected rows staged beside the halves, and their differences, bucket by bucket.

After a crash either staged files remain, which the next commit sweeps, or the whole plan, which one rename publishes.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hybrid.config.expectations import ExpectationKind
from hybrid.lake import plans
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import HalfSnapshot
from hybrid.lake.table_context import TableContext
from hybrid.progress import counted
from hybrid.replace.backfill.base import WHOLE, Base
from hybrid.replace.backfill.conflict_monitor import refuse_falling_limit
from hybrid.replace.backfill.correction import Correction
from hybrid.replace.backfill.from_kafka import corrected_by_kafka
from hybrid.replace.backfill.from_rejected import corrected_by_rejected
from hybrid.replace.backfill.request import ChangeKind, Request
from hybrid.replace.backfill.row_replacement import LIVE_AFTER, corrected_arrivals, fresh_topic
from hybrid.replace.backfill.staging import stage_units
from hybrid.replace.backfill.values import corrected_values
from hybrid.replace.check_result import CheckState, change_result
from hybrid.replace.check_rows import spark_errors
from hybrid.replace.job_checks import check_staged, notices, watched
from hybrid.replace.lineage import EntryState, entries_of
from hybrid.replace.report import numbers
from hybrid.replace.stage import stage
from hybrid.store.plan_files import ROWS
from hybrid.table.lineage import MERGE
from hybrid.table.plans import (
    BucketState,
    Counts,
    Plan,
    PlannedBucket,
    Span,
    Unit,
    span,
    total,
)


def plan_backfill(
    table: TableContext,
    halves: tuple[HalfSnapshot, HalfSnapshot | None],
    request: Request,
    plan: Plan,
) -> Plan:
    """Stages the correction of `request` on the pinned `halves` (OFFLINE, REALTIME) and publishes its plan.

    `plan` provides id, table, times, author and description; the results are added to it. DataError for a row that
    cannot be computed or converted: nothing was changed.
    """
    offline, realtime = halves
    with table.staging(plan.id) as folder:
        started = time.monotonic()
        base = Base(table.bench, table.spec, offline, realtime, request.window, folder)
        what = f"'{plan.change}' cannot be computed for every row of '{plan.table}'"
        with spark_errors(what, hint="Leave such rows out: hybrid backfill plan TABLE ... --where CONDITION"):
            correction = _correct(base, request, folder)
            units = stage_units(base, correction, folder / ROWS)
        failed = _failed_before(table.layout, offline)
        result = _with_checks(request, correction, _fill(base, correction, units, plan, failed))
        result = replace(result, seconds=round(time.monotonic() - started, 3), sentence=_sentence(result))
        refuse_falling_limit(result, result.units, offline)
        for leftover in ("winners", "markers", "input", LIVE_AFTER):
            shutil.rmtree(folder / leftover, ignore_errors=True)
        plans.publish(table.layout, folder, result)
    return result


def _correct(base: Base, request: Request, folder: Path) -> Correction:
    bench, spec = base.bench, base.spec
    bench.progress.say(f"Comparing with what '{spec.name}' holds.")
    if request.kind is ChangeKind.REJECTED:
        return corrected_by_rejected(base, request)
    if request.kind is ChangeKind.KAFKA:
        return corrected_by_kafka(base, request)
    if request.kind is not ChangeKind.ROWS:
        return corrected_values(base, request)
    expected = watched(request.expectations)
    staged = stage(bench, spec, request.files, request.csv_format, folder / "input", expected)
    staged, checked = check_staged(bench, spec, staged, request.expectations)
    return replace(corrected_arrivals(base, request, staged), checks=checked.results)


def _failed_before(layout: TableLayout, offline: HalfSnapshot) -> set[Span]:
    """Buckets of earlier plans whose last run ended in an error before it corrected them."""
    failed: set[Span] = set()
    for plan_id in plans.plan_ids(layout):
        state = plans.desired_state_of(layout, plan_id)
        earlier = plans.find_plan(layout, plan_id) if state.error is not None else None
        if earlier is not None:
            remaining = earlier.left(plans.corrected_spans(offline, plan_id))
            failed |= {span(bucket) for unit in remaining for bucket in earlier.buckets_of(unit)}
    return failed


def _fill(base: Base, correction: Correction, units: Sequence[Unit], plan: Plan, failed: set[Span]) -> Plan:
    groups = correction.groups
    unit_of = {bucket: number for number, (buckets, _) in enumerate(groups) for bucket in buckets}
    corrected = _corrected(base)
    places: dict[int, int] = {}
    buckets: list[PlannedBucket] = []
    for start, end in _bounds(base):
        first = WHOLE if start is None else start
        counts = correction.counts.get(first, Counts())
        holds_rows = counts.rows_before or counts.rows_after or first in unit_of
        if start is not None and not holds_rows and (start, end) not in failed:
            continue  # a window may span decades
        places[first] = len(buckets)
        state = BucketState.FAILED if (start, end) in failed else _state(base, counts, start, end, corrected)
        buckets.append(
            PlannedBucket(start, end, state, counts, unit_of.get(first), tuple(correction.samples.get(first, ())))
        )
    placed = [replace(unit, buckets=tuple(places[bucket] for bucket in groups[unit.number][0])) for unit in units]
    return replace(
        plan,
        offline_version=base.offline.version,
        realtime_version=base.realtime.version if base.realtime is not None else None,
        fresh_topic=fresh_topic(base),
        table_id=base.offline.table_id,
        warnings=(*plan.warnings, *correction.warnings),
        buckets=tuple(buckets),
        units=tuple(placed),
    )


def _with_checks(request: Request, correction: Correction, plan: Plan) -> Plan:
    """The plan with the results of the expectations. The row count is that of the corrected buckets."""
    counts = total(bucket.counts for bucket in plan.buckets if bucket.unit is not None)
    of_count = [
        expectation
        for expectation in request.expectations
        if expectation.kind is ExpectationKind.ROW_COUNT_CHANGE and plan.units
    ]
    counted_ones = [change_result(expectation, counts.rows_before, counts.rows_after) for expectation in of_count]
    results = (*correction.checks, *counted_ones)
    return replace(
        plan,
        checks=tuple(result.to_json() for result in results),
        failed_checks=tuple(result.name for result in results if result.state is CheckState.FAILED),
        warnings=(*plan.warnings, *notices(results)),
    )


def _bounds(base: Base) -> list[tuple[int | None, int | None]]:
    if base.window is None:
        return [(None, None)]
    return [(bucket.start, bucket.end) for bucket in base.window.buckets()]


def _corrected(base: Base) -> set[str]:
    """The segments that active replacements added, and the segments that these were merged into since."""
    segments: set[str] = set()
    for entry in reversed(entries_of(base.offline)):
        if entry.state is not EntryState.ACTIVE or entry.kind == "revert":
            continue
        if entry.kind != MERGE or not segments.isdisjoint(entry.lineage.segments_from):
            segments.update(entry.lineage.segments_to)
    return segments


def _state(base: Base, counts: Counts, start: int | None, end: int | None, corrected: set[str]) -> BucketState:
    if not counts.rows_before:
        return BucketState.MISSING
    reached = any(file.segment in corrected and file.may_reach(start, end) for file in base.offline.files)
    return BucketState.CORRECTED if reached else BucketState.PRESENT


def _sentence(plan: Plan) -> str:
    touched = [bucket for bucket in plan.buckets if bucket.unit is not None]
    if not touched:
        rows = sum(bucket.counts.rows_before for bucket in plan.buckets)
        range_words = f"{counted(len(plan.buckets), 'bucket')} of '{plan.table}' with {counted(rows, 'row')}"
        return f"Nothing to change in {range_words}."
    return (
        f"Would correct {len(touched)} of {counted(len(plan.buckets), 'bucket')} of '{plan.table}'{_reach(plan)}: "
        f"{numbers(total(bucket.counts for bucket in touched))}.{_warning(plan)} Nothing is visible before it runs."
    )


def _reach(plan: Plan) -> str:
    """How far a plan reaches beyond what its author gave, as a phrase: the question before its run says it."""
    if not plan.request or plan.buckets[0].start is None:
        return ""
    begins, ends = (plan.request.get(name) is not None for name in ("start", "end"))
    if not begins and not ends:
        return ", over all of its times"
    return "" if begins and ends else ", up to its newest row" if begins else ", from its oldest row"


def _warning(plan: Plan) -> str:
    removes_all = plan.request.get("delete") and plan.request.get("where") is None
    return " It has no --where: every row there is removed." if removes_all else ""
