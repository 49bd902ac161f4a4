"""Segments excluded from merging, with the reason: a replacement or backfill needs them, or they hold hidden rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hybrid.config.table_config import TableSpec
from hybrid.lake import plans, pushes
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import HalfSnapshot, texts
from hybrid.move.segments import Aged
from hybrid.runtime.json_values import epoch_ms
from hybrid.schema.rounding import rounded_down
from hybrid.table.lineage import MERGE
from hybrid.table.plans import Span, span
from hybrid.table.state import Act

# How long a backfill plan that nobody has run excludes the segments of its buckets.
_LOOKED_AT_MS = 86_400_000
_BEFORE_ALL = -(1 << 63)
CORRECTED = "corrections of what flows have brought, which a refresh has to tell apart"
HIDDEN = "they hold rows that the boundary hides for now"
DIVIDED = "the boundary lies among times that are rounded to one of theirs"


@dataclass(frozen=True)
class MergeExclusion:
    """Excluded segments, by `names` and by `spans` of time, with the reason.

    Rows at or past `hidden_ms` are hidden, or may be: such a row must not replace a visible one. None: no row is
    hidden. Rows at or past `whole_ms` have not moved or are hidden: times that are rounded to one must all be there
    first.
    """

    names: dict[str, str] = field(default_factory=dict)
    spans: tuple[tuple[Span, str], ...] = ()
    hidden_ms: int | None = None
    whole_ms: int | None = None

    def why(self, one: Aged) -> str | None:
        """The reason why a segment is excluded; None when it may be merged."""
        if one.name in self.names:
            return self.names[one.name]
        if self.hidden_ms is not None and (one.high is None or one.high >= self.hidden_ms):
            return HIDDEN
        if self.whole_ms is not None and (one.high is None or one.high >= self.whole_ms):
            return DIVIDED
        return next((why for (start, end), why in self.spans if _reaches(one, start, end)), None)


def merge_exclusions(
    spec: TableSpec,
    layout: TableLayout,
    half: HalfSnapshot,
    lineage: Sequence[Act],
    now_ms: int,
    *,
    leaves_out: bool,
    step_ms: int = 1,
) -> MergeExclusion:
    """The exclusions of a half. `lineage` are operations with an entry; `leaves_out`: the merge drops or combines rows.

    Times are rounded to `step_ms`.
    """
    names: dict[str, str] = {}
    if spec.by_flows:
        corrections = (act for act in lineage if act.kind != MERGE)
        names = {name: CORRECTED for act in corrections for name in texts(act.detail["segments_to"])}
    spans: list[tuple[Span, str]] = []
    for plan_id in plans.plan_ids(layout):
        why = f"backfill '{plan_id}' is to correct their times"
        spans += [(bucket_span, why) for bucket_span in _to_correct(layout, plan_id, half, now_ms)]
    for entry in pushes.in_progress(layout):
        names |= dict.fromkeys(entry.segments_from, f"replacement '{entry.id}' is to replace them")
    hidden_ms = hidden_from(spec, half) if leaves_out else None
    return MergeExclusion(
        names, tuple(spans), hidden_ms, _whole_until(half.offline.boundary.time_ms, hidden_ms, step_ms)
    )


def is_awaited(layout: TableLayout, half: HalfSnapshot) -> bool:
    """Whether rows wait to be swapped into the half, by a backfill, however old its plan, or by a replacement."""
    return bool(pushes.in_progress(layout)) or any(
        _to_correct(layout, plan_id, half, 0) for plan_id in plans.plan_ids(layout)
    )


def hidden_from(spec: TableSpec, half: HalfSnapshot) -> int | None:
    """The time from which rows of OFFLINE are hidden, by mode pinot or an override; None: no row is hidden."""
    effective = half.effective_boundary(spec.boundary_lag_ms)
    if not effective.restricts_offline:
        return None
    return _BEFORE_ALL if effective.limit_ms is None else effective.limit_ms


def _whole_until(time_ms: int | None, hidden_ms: int | None, step_ms: int) -> int | None:
    """The start of the first step of `step_ms` that T or `hidden_ms` divides; None when neither divides one."""
    divided = (limit for limit in (time_ms, hidden_ms) if limit is not None and limit % step_ms)
    return min((rounded_down(limit, step_ms) for limit in divided), default=None)


def claims_on(layout: TableLayout) -> frozenset[tuple[str, str]]:
    """The plans and replacements that may wait for segments, with the desired state of each. Cheap to read."""
    claims = {(plan_id, str(plans.desired_state_of(layout, plan_id).wish)) for plan_id in plans.plan_ids(layout)}
    return frozenset(claims | {(entry.id, "open") for entry in pushes.in_progress(layout)})


def _to_correct(layout: TableLayout, plan_id: str, half: HalfSnapshot, now_ms: int) -> list[Span]:
    """The buckets that a plan has yet to correct."""
    desired = plans.desired_state_of(layout, plan_id).wish
    plan = (
        None if desired in (plans.DesiredState.CANCEL, plans.DesiredState.ENDED) else plans.find_plan(layout, plan_id)
    )
    if plan is None or (desired is plans.DesiredState.LOOK and now_ms - epoch_ms(plan.created_at) > _LOOKED_AT_MS):
        return []
    return [
        span(bucket) for unit in plan.left(plans.corrected_spans(half, plan_id)) for bucket in plan.buckets_of(unit)
    ]


def _reaches(one: Aged, start: int | None, end: int | None) -> bool:
    if start is None or end is None or one.low is None or one.high is None:
        return True
    return one.low < end and start <= one.high
