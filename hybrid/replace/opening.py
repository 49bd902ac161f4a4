"""Opens a replacement that several jobs push to, and takes back a replacement that has not ended. Needs no JVM.

After Pinot's segment replacement protocol: until it ends, pushed rows are staged and invisible to queries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from hybrid.config.table_config import Half, TableSpec
from hybrid.errors import ConflictError, NotFoundError, UsageError
from hybrid.lake import pushes
from hybrid.lake.commit_context import new_act_id
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.lake.pushes import OpenReplacement, PushState
from hybrid.replace.report import shown
from hybrid.replace.swap import require_offline
from hybrid.table.names import why_no_segment_name


def open_replacement(
    spec: TableSpec,
    layout: TableLayout,
    names: tuple[Sequence[str], Sequence[str]],
    *,
    created_at: str,
    force_cleanup: bool = False,
    notes: Mapping[str, str] | None = None,
    user: str | None = None,
) -> OpenReplacement:
    """Opens a replacement of the segments `names[0]`; jobs will push the new ones under the names `names[1]`.

    UsageError for invalid lists. NotFoundError for an old segment that does not exist. ConflictError for a new segment
    that exists, or when another open replacement shares a segment; `force_cleanup` reverts that one instead.
    """
    require_offline(spec)
    _check_lists(names)
    with pushes.opening(layout):
        half = open_half(layout.half(Half.OFFLINE))
        _check_segments(spec, half, names)
        _clear_the_way(spec, layout, names, force_cleanup)
        files = {name: half.files_of(name) for name in names[0]}
        entry_id = new_act_id("replace")
        entry = OpenReplacement(entry_id, spec.name, created_at, files, tuple(names[1]), notes or {}, user)
        pushes.publish(layout, entry)
    return entry


def take_back(layout: TableLayout, entry: OpenReplacement, force: bool) -> None:
    """Discards what was pushed to a replacement in progress. ConflictError without `force`, as in Pinot."""
    if not force:
        raise ConflictError(
            f"Replacement '{entry.id}' of '{entry.table}' is IN_PROGRESS: jobs may still push to it. "
            "Nothing was changed.",
            hint="forceRevert=true throws away what was pushed; endReplaceSegments makes it visible.",
        )
    with pushes.changing(layout, entry.id):
        state = pushes.state_of(layout, entry.id)
        if state is not PushState.IN_PROGRESS:
            raise closed(entry, state)
        pushes.close(layout, entry.id, PushState.REVERTED)


def closed(entry: OpenReplacement, state: PushState) -> ConflictError:
    """The error for a replacement that is not in progress."""
    return ConflictError(
        f"Replacement '{entry.id}' of '{entry.table}' is {state}, not IN_PROGRESS. Nothing was changed.",
        hint=f"POST /segments/{entry.table}/startReplaceSegments",
    )


def _check_lists(names: tuple[Sequence[str], Sequence[str]]) -> None:
    if not (names[0] or names[1]):
        raise UsageError("segmentsFrom and segmentsTo are both empty: there is nothing to replace, and nothing to add.")
    for key, listed in zip(("segmentsFrom", "segmentsTo"), names, strict=True):
        twice = next((name for name, count in Counter(listed).items() if count > 1), None)
        if twice is not None:
            raise UsageError(f"{key}: '{twice}' is given twice.")
    for name in names[1]:
        why = why_no_segment_name(name)
        if why is not None:
            raise UsageError(f"segmentsTo: '{name}' cannot be a segment's name: {why}.")


def _check_segments(spec: TableSpec, half: HalfSnapshot, names: tuple[Sequence[str], Sequence[str]]) -> None:
    existing = {file.segment for file in half.files}
    for name in names[0]:
        if name not in existing:
            raise NotFoundError.named(f"segmentsFrom: OFFLINE segment of '{spec.name}'", name, existing)
    there = [name for name in names[1] if name in existing]
    if there:
        raise ConflictError(
            f"segmentsTo: {shown(there)} exists in OFFLINE of '{spec.name}'. Nothing was changed.",
            hint="Give new segments new names. A job alone replaces a segment under its name: POST /jobs",
        )


def _clear_the_way(
    spec: TableSpec, layout: TableLayout, names: tuple[Sequence[str], Sequence[str]], force_cleanup: bool
) -> None:
    for other in pushes.in_progress(layout):
        for key, mine, its in zip(
            ("segmentsFrom", "segmentsTo"), names, (other.segments_from, other.segments_to), strict=True
        ):
            common = [name for name in mine if name in its]
            if common and not force_cleanup:
                raise ConflictError(
                    f"{key}: {shown(common)} of '{spec.name}' is in {key} of '{other.id}' too, which has been "
                    f"IN_PROGRESS since {other.created_at}. Nothing was changed.",
                    hint="End or revert that one, or start with forceCleanup=true, which reverts it.",
                )
            if common:
                take_back(layout, other, force=True)
                break
