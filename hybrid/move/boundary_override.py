"""Override of the boundary's time limit, set or cleared by a person. A commit without rows: only the state changes.

The sequence, and what a crash in between leaves:
  read the OFFLINE half's state, decide        nothing done; usually there is nothing to do, and no JVM is started
  take the OFFLINE lock, decide again          nothing done
  one Delta commit: the override               done, or not done
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hybrid.config.table_config import BoundaryMode, Half, TableSpec
from hybrid.errors import ConflictError, NotFoundError, SpecError
from hybrid.lake.commit_context import new_act_id
from hybrid.lake.log import HalfSnapshot
from hybrid.lake.table_context import TableContext
from hybrid.runtime.json_values import utc
from hybrid.runtime.sentence_repr import shown_as_sentence
from hybrid.schema.rounding import rounded_down
from hybrid.table.boundary import Boundary
from hybrid.table.effective import covered_until, end_of_step
from hybrid.table.state import next_act


@shown_as_sentence
@dataclass(frozen=True)
class BoundaryReport:
    """The result of setting or clearing a boundary; `version` is None when there was nothing to do."""

    version: int | None
    sentence: str

    @property
    def committed(self) -> bool:
        """Whether something was committed."""
        return self.version is not None

    @property
    def did_something(self) -> bool:
        """Whether something was committed."""
        return self.committed


@dataclass(frozen=True)
class Decision:
    """The boundary to commit. `after` None: nothing to do, and `sentence` says why."""

    after: Boundary | None
    sentence: str


@dataclass(frozen=True)
class OverrideRequest:
    """A request for the override: a limit in epoch ms (half-open), the last offline time, or clearing it.

    `accepted`: the user confirmed a limit before every offline row, which hides all of them.
    """

    time_ms: int | None = None
    clear: bool = False
    accepted: bool = False


def change_boundary(table: TableContext, wish: OverrideRequest, act_id: str | None = None) -> BoundaryReport:
    """Set or clear the override. `act_id` is the operation's id; None generates one.

    Raises ConflictError for a limit beyond what the offline half covers. Raises NotFoundError when the table has one
    half only, or no offline row whose time could be used; SpecError without a time column. Nothing was changed then.
    """
    _require_boundary(table.spec)
    act = act_id or new_act_id("boundary")
    early = decide(table.spec, table.half(Half.OFFLINE), wish)
    if early.after is None:
        return BoundaryReport(None, early.sentence)
    return table.until_not_overtaken(lambda: _commit(table, wish, act))


def _require_boundary(spec: TableSpec) -> None:
    """Raise an error when the table has no boundary that could be set."""
    if len(spec.halves) < len(Half):
        raise NotFoundError(f"Table '{spec.name}' has one half only, so it has no boundary.")
    if spec.time_column is None:
        raise SpecError(f"Table '{spec.name}' has no time column: offsets alone divide its halves.")


def decide(spec: TableSpec, offline: HalfSnapshot, wish: OverrideRequest) -> Decision:
    """The decision for a request on an OFFLINE half."""
    boundary = offline.offline.boundary
    if wish.clear:
        return _clear(spec, boundary)
    if wish.time_ms is not None:
        if not wish.accepted:
            _refuse_hiding_all(spec, offline, wish.time_ms)
        return _set(spec, boundary, offline.last_ms, wish.time_ms)
    if boundary.mode is BoundaryMode.EXACT:
        why = "its boundary's mode is exact, and offline rows are visible from their commit on"
        return Decision(None, f"Nothing to set for '{spec.name}': {why}{_standing(boundary)}.")
    if offline.last_ms is None:
        raise NotFoundError(f"Table '{spec.name}' has no offline rows, so there is no last offline time to set.")
    last_ms = covered_until(boundary, offline.last_ms) or 0
    return _set(spec, boundary, offline.last_ms, rounded_down(last_ms, boundary.step_ms))


def _refuse_hiding_all(spec: TableSpec, offline: HalfSnapshot, limit_ms: int) -> None:
    """ConflictError for a limit before every offline row: usually seconds were entered for milliseconds."""
    firsts = [file.times[0] for file in offline.files if file.times is not None and file.rows]
    if not firsts or limit_ms > min(firsts):
        return
    raise ConflictError(
        f"The boundary of '{spec.name}' at {utc(limit_ms)} would hide all of its offline rows, which begin at "
        f"{utc(min(firsts))}. Nothing was changed.",
        hint=f"hybrid boundary set {spec.name} --at TIME --yes (if that is meant)",
    )


def _set(spec: TableSpec, boundary: Boundary, last_ms: int | None, limit_ms: int) -> Decision:
    if boundary.override_ms == limit_ms:
        return Decision(None, f"Nothing to set for '{spec.name}': its boundary is set to {utc(limit_ms)} already.")
    covered_ms = covered_until(boundary, last_ms)
    if covered_ms is None or limit_ms > covered_ms:
        far = f"covers times before {utc(covered_ms)}" if covered_ms is not None else "covers no time yet"
        raise ConflictError(
            f"The boundary of '{spec.name}' cannot be set to {utc(limit_ms)}: its OFFLINE half {far}, and rows between "
            "would be seen in neither half. Nothing was changed.",
            hint=f"hybrid boundary show {spec.name}",
        )
    if boundary.floor_ms is not None and limit_ms < boundary.floor_ms:
        raise ConflictError(
            f"The boundary of '{spec.name}' cannot be set to {utc(limit_ms)}: a purge or retention has "
            f"removed rows before {utc(boundary.floor_ms)}, and REALTIME cannot answer for that time any more. Nothing "
            "was changed.",
            hint=f"hybrid boundary show {spec.name}",
        )
    if limit_ms % boundary.step_ms:
        end_ms = end_of_step(limit_ms, boundary)
        raise ConflictError(
            f"The boundary of '{spec.name}' cannot be set to {utc(limit_ms)}: times of its OFFLINE half are rounded, "
            f"and rows from {utc(end_ms - boundary.step_ms)} to {utc(end_ms)} may stand at one. Nothing was changed.",
            hint=f"Set it to {utc(end_ms - boundary.step_ms)} or {utc(end_ms)}.",
        )
    sentence = (
        f"Set the boundary of '{spec.name}' to {utc(limit_ms)} until it is cleared: offline rows before it are "
        "visible, and realtime rows from it on."
    )
    return Decision(replace(boundary, override_ms=limit_ms), sentence)


def _clear(spec: TableSpec, boundary: Boundary) -> Decision:
    if boundary.override_ms is None:
        return Decision(None, f"Nothing to clear for '{spec.name}': its boundary was not set by hand.")
    sentence = (
        f"Cleared the boundary of '{spec.name}' that was set to {utc(boundary.override_ms)}: mode {boundary.mode} "
        "alone decides again."
    )
    return Decision(replace(boundary, override_ms=None), sentence)


def _standing(boundary: Boundary) -> str:
    return "" if boundary.override_ms is None else f" as far as it is set, {utc(boundary.override_ms)}"


def _commit(table: TableContext, wish: OverrideRequest, act_id: str) -> BoundaryReport:
    with table.lock(Half.OFFLINE, with_spark=False) as half:
        current = table.half(Half.OFFLINE)
        decision = decide(table.spec, current, wish)
        if decision.after is None:  # another process has just done the same
            return BoundaryReport(None, decision.sentence)
        detail = {
            "override_before_ms": current.offline.boundary.override_ms,
            "override_ms": decision.after.override_ms,
            "result": decision.sentence,
        }
        act = next_act(current.offline, act_id, "boundary", table.bench.now_iso(), detail)
        state = replace(current.offline, act=act, boundary=decision.after)
        return BoundaryReport(half.commit_state(state, planned=current.version), decision.sentence)
