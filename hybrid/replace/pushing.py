"""Jobs whose segments an open replacement waits for: their rows are staged for it, invisible to queries.

After a crash either staged files remain, which the next commit sweeps, or the whole push, which one rename publishes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hybrid.config.job_spec import JobSpec
from hybrid.config.table_config import TableSpec
from hybrid.errors import ConflictError
from hybrid.lake import pushes
from hybrid.lake.layout import TableLayout, quoted
from hybrid.lake.plan_store import upload_push
from hybrid.lake.pushes import OpenReplacement, Push, PushedSegment, PushState
from hybrid.lake.staged_frames import stage_segments
from hybrid.lake.table_context import TableContext
from hybrid.replace.opening import closed
from hybrid.replace.plan import under_names
from hybrid.replace.report import shown
from hybrid.replace.stage import StagedRows
from hybrid.replace.targets import Target
from hybrid.store.plan_files import ROWS
from hybrid.table import columns


def awaited_by(layout: TableLayout, job: JobSpec, targets: Sequence[Target]) -> OpenReplacement | None:
    """The open replacement that waits for a job's segments, or None.

    ConflictError when it waits for only some of them, or when the job itself covers a range: a job is visible whole or
    not at all.
    """
    names = [target.name for target in targets]
    for entry in pushes.in_progress(layout):
        awaited = [name for name in names if name in entry.segments_to]
        if not awaited:
            continue
        others = [name for name in names if name not in entry.segments_to]
        if others:
            raise ConflictError(
                f"The job writes {shown(awaited)}, which '{entry.id}' waits for, and {shown(others)}, which it does "
                "not. Nothing was changed.",
                hint="Name all of them in segmentsTo, or write them by two jobs.",
            )
        if job.covers:
            raise ConflictError(
                f"The job covers '{job.covers}', and '{entry.id}', which waits for {shown(awaited)}, says what goes. "
                "Nothing was changed.",
                hint="Run it without what it covers: segmentsFrom goes.",
            )
        return entry
    return None


def stage_push(table: TableContext, staged: StagedRows, targets: Sequence[Target], folder: Path) -> Push:
    """Writes a job's rows by segment to `folder`, which `publish_push` then turns into a push."""
    own = [quoted(name) for name in (columns.SEGMENT, columns.OFFSET, columns.OP, columns.TIME)]
    user = [quoted(name) for name in table.spec.schema.column_names]
    rows = under_names(table.bench, staged, targets).select(*own, *user)
    grouped = rows.sortWithinPartitions(quoted(columns.SEGMENT), quoted(columns.OFFSET))  # a task reads several files
    stage_segments(table.bench, grouped, folder / ROWS)
    return Push(0, "", user_columns(table.spec), tuple(_segment(staged, target) for target in targets))


def publish_push(layout: TableLayout, entry: OpenReplacement, push: Push, folder: Path) -> None:
    """Adds a push to the replacement as its newest. ConflictError when the replacement has ended by now."""
    upload_push(layout, entry.id, folder)
    with pushes.changing(layout, entry.id):
        state = pushes.state_of(layout, entry.id)
        if state is not PushState.IN_PROGRESS:
            raise closed(entry, state)
        pushes.add_push(layout, entry.id, folder, replace(push, number=pushes.next_number(layout, entry.id)))


def user_columns(spec: TableSpec) -> tuple[tuple[str, str], ...]:
    """The user columns with their Spark types."""
    return tuple((field.name, field.spark_type) for field in spec.schema.fields)


def _segment(staged: StagedRows, target: Target) -> PushedSegment:
    files = [staged.files[number] for number in target.files]
    rows, deletes = sum(file.rows for file in files), sum(file.deletes for file in files)
    return PushedSegment(target.name, rows, deletes, target.low, target.high)
