"""Runs declared flows: once-flows that have not run, and incremental ones until no file is new. Each is independent.

The tables exist by then (see `hybrid.flow.declared.targets`). A flow's result is its report; a failed flow stops no
other.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hybrid.config.table_config import Half, TableSpec
from hybrid.errors import HybridError, OvertakenError, SpecError
from hybrid.flow.declared.binding import Bound, NothingNew, OnceBinding, StreamBinding, changed_words, refuse_unnamed
from hybrid.flow.declared.convert import column_types
from hybrid.flow.declared.documents import new_columns
from hybrid.flow.declared.flow_errors import told
from hybrid.flow.declared.incremental import MicroBatch, commit_batch
from hybrid.flow.declared.model import Flow
from hybrid.flow.declared.once import Load, commit_load, commit_rejected
from hybrid.flow.declared.processed_files import read_ledger
from hybrid.flow.declared.progress import INCREMENTAL, ONCE, FlowProgress, FlowState, flow_state, progress_of
from hybrid.flow.declared.refresh import clear_moved
from hybrid.flow.declared.session import FlowSession, in_session
from hybrid.flow.declared.shape import frame_of, refuse_per_batch
from hybrid.flow.declared.stage import StagedStream, stage_rows
from hybrid.flow.declared.targets import Keeper
from hybrid.lake.commit_context import CommitContext, new_act_id
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import open_half
from hybrid.lake.table_context import TableContext
from hybrid.progress import counted
from hybrid.runtime.sentence_repr import shown_as_sentence
from hybrid.schema.types import DataType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_ATTEMPTS = 5


@shown_as_sentence
@dataclass(frozen=True)
class FlowReport:
    """The result of a flow's run. `state` is DONE, NOTHING or FAILED; counts are of this run; `sentence` sums it up.

    `hint` says what to do about a failure, where something is known.
    """

    target: str
    flow: str
    type: str
    state: str
    rows: int = 0
    rejected: int = 0
    files: int = 0
    batches: int = 0
    sentence: str = ""
    warnings: tuple[str, ...] = ()
    hint: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The report in its printed form."""
        return {**vars(self), "warnings": list(self.warnings)}


@dataclass
class FlowRun:
    """One run of one flow."""

    bench: CommitContext
    session: FlowSession
    keeper: Keeper
    flow: Flow
    warnings: list[str] = field(default_factory=list)

    def run(self) -> FlowReport:
        """Loads all new files. HybridError when it fails; what it has committed by then stays."""
        try:
            report = self._once(self._state()) if self.flow.once else self._incremental()
        except HybridError:
            raise
        except Exception as error:  # Spark or the user's function may raise anything; only the flow fails
            raise told(error, self.flow, self.session.declaration.source) from error
        return replace(report, warnings=tuple(dict.fromkeys(self.warnings)))

    @property
    def _layout(self) -> TableLayout:
        return self.keeper.layout(self.flow.target)

    def _spec(self) -> TableSpec:
        spec = self.keeper.spec(self.flow.target)
        if spec is None:
            raise SpecError(f"Table '{self.flow.target}' was dropped while flow '{self.flow.name}' ran.")
        return spec

    def _state(self) -> FlowState:
        realtime = open_half(self._layout.half(Half.REALTIME)).realtime
        offline = open_half(self._layout.half(Half.OFFLINE)).offline
        state = flow_state(self.flow.kind, self.flow.name, realtime, offline)
        refuse_other_kind(self.flow, state)
        return state

    def _call(self, binding: Any) -> DataFrame:
        """The frame that the flow's function returns."""
        with in_session(self.session, binding):
            return frame_of(self.flow, self.flow.query())

    def _staged(self, frame: DataFrame, bound: Bound, folder: Any) -> tuple[TableContext, StagedStream]:
        """Stages the frame's rows in the table's columns; new columns are added to the table first."""
        spec = self._spec()
        new = new_columns(spec, column_types(frame.schema))
        refuse_unnamed(bound, [column.name for column in new])
        if new:
            names = ", ".join(column.name for column in new)
            self.bench.progress.say(f"{self.flow.name}: adding {names} to '{spec.name}'.")
            spec = self.keeper.add_columns(spec.name, new)
            self.warnings += bound.doubts(column.name for column in new if column.data_type is DataType.STRING)
        staged = stage_rows(self.bench.spark, spec, frame, bound.rejected, folder)
        for file in bound.files:
            file.check_unchanged()
        self.warnings += bound.warnings
        return TableContext(self.bench, spec, self._layout), staged

    # Once

    def _once(self, state: FlowState) -> FlowReport:
        for _ in range(_ATTEMPTS):
            if state.has_run:
                return self._report("NOTHING", sentence=_idle_words(self.flow, state))
            try:
                return self._load(state)
            except OvertakenError:
                state = self._state()
        raise OvertakenError(f"Other operations on table '{self.flow.target}' came first {_ATTEMPTS} times.")

    def _load(self, state: FlowState) -> FlowReport:
        self.bench.progress.say(f"{self.flow.name}: loading.")
        bound = OnceBinding(self.flow.name, self.bench.spark, self.session.inferred)
        frame = self._call(bound)
        if frame.isStreaming:
            raise SpecError(f"Flow '{self.flow.name}' is once and returns a streaming frame.")
        attempt = new_act_id("flow")
        with self.bench.staging(self._layout, attempt) as folder:
            table, staged = self._staged(frame, bound, folder)
            load = Load(attempt, self.flow.name, state.wanted, len(bound.files), staged)
            commit_rejected(table, load)
            names = commit_load(table, load)
        again = " again (full refresh)" if state.wanted else ""
        sentence = (
            f"Loaded {counted(staged.rows, 'row')} of {counted(load.files, 'file')} into "
            f"{counted(len(names), 'offline segment')}{again}{_rejected_words(staged.rejected)}."
        )
        return self._report("DONE", staged.rows, staged.rejected, load.files, 1, sentence)

    # Incremental

    def _incremental(self) -> FlowReport:
        done = self._report("NOTHING")
        ledger: dict[str, int] | None = None
        overtaken = 0
        while True:
            if self._state().is_refreshing:  # another process may have begun it; this one continues it
                clear_moved(TableContext(self.bench, self._spec(), self._layout))
            snapshot = open_half(self._layout.half(Half.REALTIME))
            before = progress_of(snapshot.realtime, self.flow.name)
            if ledger is None:
                refresh = before.refresh if before else 0
                ledger = read_ledger(snapshot, self.flow.target, self.flow.name, refresh)
            bound = StreamBinding(
                self.flow.name, self.bench.spark, self.session.inferred, ledger=ledger, known=_schema(before)
            )
            try:
                staged = self._batch(bound, before)
            except NothingNew as nothing:
                self.warnings += [changed_words(nothing.changed)] if nothing.changed else []
                return self._caught_up(done, before, nothing)
            except OvertakenError:
                # A process that commits first has read files, so this ends when no new file is left.
                overtaken, ledger = 0 if self._went_on(before) else overtaken + 1, None
                if overtaken == _ATTEMPTS:
                    raise
                continue
            ledger.update({file.path: file.modified_ms for file in bound.files})
            done = replace(
                done,
                state="DONE",
                rows=done.rows + staged.rows,
                rejected=done.rejected + staged.rejected,
                files=done.files + len(bound.files),
                batches=done.batches + 1,
            )
            if not bound.left:
                return replace(done, sentence=_read_words(done))

    def _went_on(self, before: FlowProgress | None) -> bool:
        """Whether the flow has progressed beyond `before`, in another process."""
        return progress_of(open_half(self._layout.half(Half.REALTIME)).realtime, self.flow.name) != before

    def _batch(self, bound: StreamBinding, before: FlowProgress | None) -> StagedStream:
        """Reads and commits one micro-batch."""
        frame = self._call(bound)
        if bound.source is None:
            raise SpecError(
                f"Flow '{self.flow.name}' is not once and reads no stream: each run would append the same rows again.",
                hint="Use read_files_stream (cloudFiles, STREAM read_files), or declare it once.",
            )
        refuse_per_batch(self.flow, frame)
        self.bench.progress.say(f"{self.flow.name}: reading {counted(len(bound.files), 'file')}.")
        with self.bench.staging(self._layout, new_act_id("flow")) as folder:
            table, staged = self._staged(frame, bound, folder)
            schema = json.dumps(bound.schema.jsonValue()) if bound.schema is not None else None
            commit_batch(table, MicroBatch(self.flow.name, bound.files, staged, schema, before))
        return staged

    def _caught_up(self, done: FlowReport, before: FlowProgress | None, nothing: NothingNew) -> FlowReport:
        if done.batches:
            return replace(done, sentence=_read_words(done))
        path = nothing.source.path
        if before is None or not before.files:
            why = "no file" if not nothing.listed else f"none of {counted(nothing.listed, 'file')}"
            return replace(done, sentence=f"Nothing to do: there is {why} to read at '{path}' yet.")
        return replace(
            done,
            sentence=(
                f"Nothing to do: no new file at '{path}'; {counted(before.files, 'file')} with "
                f"{counted(before.rows, 'row')} were read, the last ones at {_minute(before.at)}."
            ),
        )

    def _report(
        self, state: str, rows: int = 0, rejected: int = 0, files: int = 0, batches: int = 0, sentence: str = ""
    ) -> FlowReport:
        flow = self.flow
        return FlowReport(flow.target, flow.name, flow.kind, state, rows, rejected, files, batches, sentence)


def refuse_other_kind(flow: Flow, found: FlowState) -> None:
    """SpecError when a flow of that name has run as the other kind: its rows would be loaded twice."""
    for side in (found.realtime, found.offline):
        if side is not None and side.kind != flow.kind:
            raise SpecError(
                f"Flow '{flow.name}' of table '{flow.target}' has run as {_words(side.kind)}, and is "
                f"declared as {_words(flow.kind)} now: its rows would be there twice.",
                hint="Give the new one another name.",
            )


def failed(flow: Flow, error: HybridError) -> FlowReport:
    """The report of a failed flow."""
    return FlowReport(flow.target, flow.name, flow.kind, "FAILED", sentence=error.words, hint=error.hint)


def _schema(progress: FlowProgress | None) -> StructType | None:
    from pyspark.sql.types import StructType

    text = progress.schema if progress else None
    return None if text is None else StructType.fromJson(json.loads(text))


def _words(kind: str) -> str:
    return {ONCE: "a once-flow", INCREMENTAL: "an incremental flow"}[kind]


def _idle_words(flow: Flow, state: FlowState) -> str:
    offline = state.offline
    assert offline is not None
    return (
        f"Nothing to do: ran on {_minute(offline.at)}, {counted(offline.rows, 'row')}; "
        f"run it again with --full-refresh {flow.name}."
    )


def _read_words(done: FlowReport) -> str:
    batches = f" in {done.batches} batches" if done.batches > 1 else ""
    return (
        f"Read {counted(done.rows, 'row')} of {counted(done.files, 'file')}{batches}{_rejected_words(done.rejected)}."
    )


def _rejected_words(rejected: int) -> str:
    return f"; {counted(rejected, 'row')} rejected (hybrid rejected list)" if rejected else ""


def _minute(at: str | None) -> str:
    return "?" if at is None else at[:19].replace("T", " ") + " UTC"
