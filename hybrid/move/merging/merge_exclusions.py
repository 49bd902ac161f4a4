"""Segments that stay as they are for now: somebody is to replace them, goes by them, or they hold hidden rows."""

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

# How long a plan of a backfill that nobody has run keeps the segments of its buckets as they are.
_LOOKED_AT_MS = 86_400_000
_BEFORE_ALL = -(1 << 63)
CORRECTED = "corrections of what flows have brought, which a refresh has to tell apart"
HIDDEN = "they hold rows that the boundary hides for now"
DIVIDED = "the boundary lies among times that are rounded to one of theirs"


@dataclass(frozen=True)
class MergeExclusion:
    """`names` and `spans` of time with the reason why their segments stay.

    Rows at `hidden_ms` or past it are hidden, or may be: a row there must not take the place of one that is seen. None:
    no row is hidden. Of times at `whole_ms` or past it rows have not moved, or are hidden: what is rounded to one time
    is there as a whole first.
    """

    names: dict[str, str] = field(default_factory=dict)
    spans: tuple[tuple[Span, str], ...] = ()
    hidden_ms: int | None = None
    whole_ms: int | None = None

    def why(self, one: Aged) -> str | None:
        """Why a segment stays; None when it may be merged."""
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
    """What stays of a half. `lineage` are the acts with an entry; `leaves_out`: rows are not only put together.

    Times are rounded to `step_ms`.
    """
    names: dict[str, str] = {}
    if spec.by_flows:
        corrections = (act for act in lineage if act.kind != MERGE)
        names = {name: CORRECTED for act in corrections for name in texts(act.detail["segments_to"])}
    spans: list[tuple[Span, str]] = []
    for plan_id in plans.plan_ids(layout):
        why = f"backfill '{plan_id}' is to correct their times"
        spans += [(one, why) for one in _to_correct(layout, plan_id, half, now_ms)]
    for entry in pushes.in_progress(layout):
        names |= dict.fromkeys(entry.segments_from, f"replacement '{entry.id}' is to replace them")
    hidden_ms = hidden_from(spec, half) if leaves_out else None
    return MergeExclusion(
        names, tuple(spans), hidden_ms, _whole_until(half.offline.boundary.time_ms, hidden_ms, step_ms)
    )


def is_awaited(layout: TableLayout, half: HalfSnapshot) -> bool:
    """Whether rows wait to come to the half: of a backfill, however long ago it was planned, or a replacement."""
    return bool(pushes.in_progress(layout)) or any(_to_correct(layout, one, half, 0) for one in plans.plan_ids(layout))


def hidden_from(spec: TableSpec, half: HalfSnapshot) -> int | None:
    """The time from which on rows of OFFLINE are hidden, by mode pinot or a boundary set by hand; None: none is."""
    effective = half.effective_boundary(spec.boundary_lag_ms)
    if not effective.restricts_offline:
        return None
    return _BEFORE_ALL if effective.limit_ms is None else effective.limit_ms


def _whole_until(time_ms: int | None, hidden_ms: int | None, step_ms: int) -> int | None:
    """The start of the first stretch of `step_ms` that T or what hides rows divides; None where they divide none."""
    divided = (one for one in (time_ms, hidden_ms) if one is not None and one % step_ms)
    return min((rounded_down(one, step_ms) for one in divided), default=None)


def claims_on(layout: TableLayout) -> frozenset[tuple[str, str]]:
    """The plans and replacements that may be waiting for segments, with what is wanted of them: quick to look at."""
    found = {(plan_id, str(plans.desired_state_of(layout, plan_id).wish)) for plan_id in plans.plan_ids(layout)}
    return frozenset(found | {(entry.id, "open") for entry in pushes.in_progress(layout)})


def _to_correct(layout: TableLayout, plan_id: str, half: HalfSnapshot, now_ms: int) -> list[Span]:
    """The buckets that a plan is to correct yet."""
    wanted = plans.desired_state_of(layout, plan_id).wish
    plan = None if wanted in (plans.DesiredState.CANCEL, plans.DesiredState.ENDED) else plans.find_plan(layout, plan_id)
    if plan is None or (wanted is plans.DesiredState.LOOK and now_ms - epoch_ms(plan.created_at) > _LOOKED_AT_MS):
        return []
    return [span(one) for unit in plan.left(plans.corrected_spans(half, plan_id)) for one in plan.buckets_of(unit)]


def _reaches(one: Aged, start: int | None, end: int | None) -> bool:
    if start is None or end is None or one.low is None or one.high is None:
        return True
    return one.low < end and start <= one.high
