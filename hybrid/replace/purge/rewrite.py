"""The commits of a purge: segments without the removed rows, one commit for each half, and the entry that records it.

Both locks are held, OFFLINE's first as in a drop, because a commit on one half may depend on rows hidden by the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from hybrid.config.table_config import BoundaryMode, Half
from hybrid.errors import ConflictError, OvertakenError
from hybrid.lake.commit import commit_act, commit_state
from hybrid.lake.commit_context import new_act_id
from hybrid.lake.half_frames import rows_in
from hybrid.lake.layout import in_files, in_stream_files, quoted
from hybrid.lake.log import HalfSnapshot
from hybrid.lake.log_entries import acts_between
from hybrid.lake.worker_files import WorkerFiles
from hybrid.replace.purge.hidden import GOES, HIDDEN, Hidden, HiddenSegment
from hybrid.replace.purge.request import PurgeScope
from hybrid.table import columns
from hybrid.table.state import PURGE, Act, HalfState, OfflineState, RealtimeState, next_act

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

# Commits that REALTIME may get between the reading and the commit: they only add rows.
_ADDING = frozenset({"ingest", "seal"})
Halves = Mapping[Half, HalfSnapshot]


def write_anew(scene: PurgeScope, half: Half, planned: Halves, hidden: Hidden, found: Sequence[HiddenSegment]) -> int:
    """Rewrites segments of a half without the rows to remove; returns the number of removed rows.

    The newest rows of the segments are read, because a REALTIME segment may have grown. OvertakenError when anything
    but ingestion committed since the survey, which has not seen it.
    """
    from pyspark.sql import functions as F

    names = [segment.name for segment in found]
    with _held(scene, planned) as current:
        stored = rows_in(scene.table.bench, current[half], names)
        rows = hidden.decided(half, stored)
        hidden_ms = F.max(F.when(F.col(HIDDEN), quoted(columns.TIME))).alias("hidden_ms")
        counted = (F.count("*").alias("rows"), hidden_ms, F.max(columns.TIME).alias("last_ms"))
        counts = rows.groupBy(columns.SEGMENT, columns.OP, GOES).agg(*counted).collect()
        going = [row for row in counts if row[GOES]]
        if _raise_floor(scene, current, half, _latest(going, "hidden_ms"), _latest(going, "last_ms")):
            current = {**current, Half.OFFLINE: scene.table.half(Half.OFFLINE)}
        # All columns of the half, including columns that this process does not know yet.
        remaining = rows.where(f"NOT {GOES}").select(*(quoted(name) for name in stored.columns))
        kept = [(row[columns.SEGMENT], row[columns.OP], row["rows"]) for row in counts if not row[GOES]]
        state = _recounted(scene, current[half].state, kept, names)
        removed = sum(row["rows"] for row in going)
        details = {"rows": removed, "segments": names}
        _commit(scene, current[half], state, _laid(scene, half, remaining), details, names)
    return int(removed)


def _latest(rows: Sequence[Row], name: str) -> int | None:
    """The greatest time in a column of these rows; None where none of them has one."""
    return max((row[name] for row in rows if row[name] is not None), default=None)


def tell(scene: PurgeScope, half: Half, removed: Mapping[str, object]) -> None:
    """Commits the entry of a purge to a half, without rows.

    On this entry servers rebuild their table snapshots, and moves that were planned before it are planned again.
    """
    with scene.table.lock(half):
        current = scene.table.half(half)
        _commit_entry(scene, current, current.state, removed)


@contextmanager
def _held(scene: PurgeScope, planned: Halves) -> Iterator[Halves]:
    """Takes both locks; yields the newest versions. OvertakenError when they hold more than ingestion added."""
    with ExitStack() as locks:
        for half in (Half.OFFLINE, Half.REALTIME):
            if half in planned:
                locks.enter_context(scene.table.lock(half))
        current = {half: scene.table.half(half) for half in planned}
        for half, snapshot in current.items():
            acts = acts_between(snapshot.path, planned[half].version, snapshot.version)
            since = snapshot.version - planned[half].version  # counts commits of other writers too
            if acts is None or len(acts) < since or not all(_only_adds(scene, half, act) for act in acts):
                raise OvertakenError(f"Another operation committed to {half.value} of '{scene.table.name}' first.")
        refuse_override(scene.table.name, current.get(Half.OFFLINE))
        yield current


def _only_adds(scene: PurgeScope, half: Half, act: Act) -> bool:
    """Whether an operation showed no hidden row again since the decisions: one of this purge, or ingestion."""
    is_own = act.kind == PURGE and act.detail.get("purge") == scene.asked.id
    return is_own or (half is Half.REALTIME and act.kind in _ADDING)


def is_overridden(offline: HalfSnapshot | None) -> bool:
    """Whether the boundary is set by hand."""
    return offline is not None and offline.offline.boundary.override_ms is not None


def override_words(table: str) -> str:
    """Why an override stands in the way: it hides rows only until it is cleared."""
    return f"The boundary of '{table}' is set by hand: rows that it hides now will be shown again when it is cleared."


def refuse_override(table: str, offline: HalfSnapshot | None) -> None:
    """ConflictError while a boundary override is set."""
    if is_overridden(offline):
        message = override_words(table) + " Nothing was changed since."
        raise ConflictError(message, hint=f"hybrid boundary clear {table}")


def _raise_floor(scene: PurgeScope, current: Halves, half: Half, hidden_ms: int | None, last_ms: int | None) -> bool:
    """Raises the boundary's floor before rows are removed, so that it cannot fall to times of hidden rows.

    Whether it committed. `hidden_ms` and `last_ms` are the last times of hidden removed rows and of all removed rows.
    In mode pinot the last offline row sets the boundary. That row may be removed, and the boundary must not fall with
    it.
    """
    if Half.OFFLINE not in current:
        return False
    offline = current[Half.OFFLINE]
    boundary = offline.offline.boundary
    floor = hidden_ms + 1 if hidden_ms is not None else None
    is_last = (
        half is Half.OFFLINE and last_ms is not None and offline.last_ms is not None and last_ms >= offline.last_ms
    )
    if boundary.mode is BoundaryMode.PINOT and is_last:
        floor = offline.effective_boundary(scene.table.spec.boundary_lag_ms).limit_ms
    if floor is None or (boundary.floor_ms is not None and boundary.floor_ms >= floor):
        return False
    state = replace(offline.offline, boundary=boundary.with_floor(floor))
    _commit_entry(scene, offline, state, {"floor_ms": floor})
    return True


def _recounted(
    scene: PurgeScope, state: HalfState, counts: Sequence[tuple[str, str, int]], names: Sequence[str]
) -> HalfState:
    """The state with the remaining row counts of consuming segments and rejected rows.

    `counts` are the remaining rows by segment and operation. Offsets stay the same: the removed rows were read.
    """
    if not isinstance(state, RealtimeState):
        return state
    rejected = columns.rejected_segment(scene.table.name)
    touched = {key: segment for key, segment in state.consuming.items() if segment.name in names}
    if not touched and rejected not in names:
        return state
    by_segment = Counter[str]()
    for segment, _, count in counts:
        by_segment[segment] += count
    consuming = {key: replace(segment, rows=by_segment[segment.name]) for key, segment in touched.items()}
    state = replace(state, consuming={**state.consuming, **consuming})
    if rejected not in names:
        return state
    # Rows that a replay or a backfill has brought are marked and no longer rejected.
    return replace(state, rejected=sum(row[2] for row in counts if (row[0], row[1]) == (rejected, columns.OP_ROW)))


def _commit(
    scene: PurgeScope,
    current: HalfSnapshot,
    state: HalfState,
    frame: DataFrame,
    told: Mapping[str, object],
    segments: Sequence[str],
) -> None:
    commit_act(
        frame,
        WorkerFiles.of(scene.table.bench, current.path),
        _with_act(scene, current, state, told),
        planned=current.version,
        replacing=segments,
    )


def _commit_entry(scene: PurgeScope, current: HalfSnapshot, state: HalfState, told: Mapping[str, object]) -> None:
    """A commit without rows. The half's lock is held, and names this process's JVM."""
    bench = scene.table.bench
    after = _with_act(scene, current, state, told)
    commit_state(current.path, after, planned=current.version, start_spark=lambda: bench.session)


def _with_act(scene: PurgeScope, current: HalfSnapshot, state: HalfState, told: Mapping[str, object]) -> HalfState:
    request = scene.asked
    why = {"purge": request.id, "columns": request.reads, "condition_sha256": request.digest}
    detail = {**why, "reason": request.reason, "user": request.user, **told}
    act = next_act(current.state, new_act_id(PURGE), "purge", scene.table.bench.now_iso(), detail)
    assert isinstance(state, OfflineState | RealtimeState)
    return replace(state, act=act)


def _laid(scene: PurgeScope, half: Half, kept: DataFrame) -> DataFrame:
    return in_files(scene.table.spec, kept) if half is Half.OFFLINE else in_stream_files(kept)
