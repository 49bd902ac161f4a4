"""What happened to a table since a backfill was planned on it: the buckets that are done, and conflicts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hybrid.config.table_config import BoundaryMode
from hybrid.errors import ConflictError, DataError
from hybrid.lake.log import HalfSnapshot, open_half, texts
from hybrid.lake.log_entries import last_time, own_states
from hybrid.table.plans import Plan, Span, Unit, span
from hybrid.table.state import PURGE, Act

KIND = "backfill"


class ConflictMonitor:
    """Reads the OFFLINE log from the plan's version, each entry once. ConflictError when that version is gone."""

    def __init__(self, path: Path, plan: Plan) -> None:
        self._plan = plan
        try:
            base = open_half(path, plan.offline_version)
        except DataError as error:
            raise _stale(plan, f"that version is no longer retained: {error}") from error
        if base.table_id != plan.table_id:
            raise _stale(plan, "the table has been created again since")
        self._before = {file.segment for file in base.files}
        self._seen = plan.offline_version
        self._expected: set[str] = set()
        self._done: set[Span] = set()
        self._purge: str | None = None
        self._newest: Act = base.state.act

    def look(self, current: HalfSnapshot) -> None:
        """Reads the commits up to `current`."""
        for version, state in own_states(current.path, current.version):
            if version <= self._seen:
                break
            self._note(state.act)
        self._seen, self._newest = current.version, current.state.act

    def left(self) -> list[Unit]:
        """The units that no commit of the plan has corrected. A unit that was reverted since counts as corrected."""
        return self._plan.left(self._done)

    def refuse_changed(self, units: Sequence[Unit], current: HalfSnapshot) -> None:
        """ConflictError when a segment of these units has changed since the plan, or anything but moves added rows."""
        if self._purge is not None:  # rows staged before may contain purged ones
            raise self._changed(f"'{self._purge}' has purged rows since")
        for unit in units:
            for segment, files in unit.replaced.items():
                now = current.files_of(segment)
                if now != files:
                    how = "has been rewritten" if now else "is gone"
                    raise self._changed(f"segment '{segment}' {how} since")
        spans = [span(bucket) for unit in units for bucket in self._plan.buckets_of(unit)]
        for file in current.files:
            is_stranger = file.segment not in self._before and file.segment not in self._expected
            if is_stranger and any(file.may_reach(start, end) for start, end in spans):
                raise self._changed(f"segment '{file.segment}' has been added among its buckets")
        refuse_falling_limit(self._plan, units, current)

    def _note(self, act: Act) -> None:
        if act.kind == "move":  # late rows: the backfill leaves them unchanged
            self._expected.update(texts(act.detail.get("segments")))
        elif act.kind == PURGE:
            self._purge = act.id
        elif act.kind == KIND and act.detail.get("backfill") == self._plan.id:
            self._expected.update(texts(act.detail.get("segments_to")))
            spans = act.detail.get("buckets")
            self._done.update((start, end) for start, end in (spans if isinstance(spans, (list, tuple)) else ()))

    def _changed(self, what: str) -> ConflictError:
        return _stale(self._plan, f"{what}; the newest commit is '{self._newest.id}' at {self._newest.at}")


def refuse_falling_limit(plan: Plan, units: Sequence[Unit], current: HalfSnapshot) -> None:
    """ConflictError when units remove the last rows, whose time divides the halves in mode pinot.

    The boundary would fall, and REALTIME would show rows again that were corrected or removed.
    """
    boundary = current.offline.boundary
    if boundary.mode is not BoundaryMode.PINOT or boundary.override_ms is not None:
        return
    replaced = {name for unit in units for name in unit.replaced}
    staying = last_time(file for file in current.files if file.segment not in replaced)
    written = [segment.high for unit in units for segment in unit.written if segment.high is not None]
    last = max([*written, *([staying] if staying is not None else [])], default=None)
    if current.last_ms is not None and (last is None or last < current.last_ms):
        raise ConflictError(
            f"Backfill '{plan.id}' takes the last rows of OFFLINE away, by whose time mode 'pinot' divides the halves "
            f"of '{plan.table}': older rows of REALTIME would be seen again. Nothing was changed.",
            hint=f"Set the boundary by hand first: hybrid boundary set {plan.table} --at ...",
        )


def _stale(plan: Plan, why: str) -> ConflictError:
    return ConflictError(
        f"Backfill '{plan.id}' of '{plan.table}' was planned on OFFLINE version {plan.offline_version}, and {why}. "
        "What it has corrected so far stays; nothing else was changed.",
        hint="Plan what is left again: hybrid backfill plan ...",
    )
