"""Runs flow files: creates the tables they need, and gives each flow a thread and a run record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid.config.table_config import Half, TableSpec
from hybrid.config.table_documents import TableDocuments
from hybrid.errors import ConflictError, HybridError, NotFoundError, UsageError
from hybrid.flow.declared.convert import ColumnType
from hybrid.flow.declared.documents import new_columns, with_columns
from hybrid.flow.declared.flow_errors import told
from hybrid.flow.declared.model import Declaration, Flow
from hybrid.flow.declared.progress import ONCE, FlowState, all_progress, flow_state
from hybrid.flow.declared.runner import FlowReport, FlowRun, failed, refuse_other_kind
from hybrid.flow.declared.session import FlowSession
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import open_half
from hybrid.operations.tables.change import evolve_halves
from hybrid.operations.tables.create import create_table
from hybrid.operations.tables.creation_lock import creation_lock
from hybrid.runtime.sentence_repr import shown_as

if TYPE_CHECKING:
    from hybrid.catalog.run_record import RunRecord
    from hybrid.home.home import Home

RUN_TYPE = "flow"
# How many flows run at once; each of them can use every core of Spark.
PARALLEL_MAX = 4
_RUNS_MAX = 1000


class FlowKeeper:
    """The tables of a home: what flows read and create."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def names(self) -> list[str]:
        """The names of all tables."""
        return self._home.definitions.names()

    def spec(self, table: str) -> TableSpec | None:
        """A table's definition, or None."""
        try:
            return self._home.spec(table)
        except NotFoundError:
            return None

    def layout(self, table: str) -> TableLayout:
        """The folders of a table's halves."""
        return self._home.layout(table)

    def create(self, schema: Mapping[str, Any], configs: Sequence[Mapping[str, Any]], source: str) -> TableSpec:
        """Creates a table, or returns the one that another flow has created meanwhile."""
        documents = TableDocuments((dict(schema), source), [(dict(config), source) for config in configs])
        try:
            return self._home.spec(create_table(self._home, documents).table)
        except ConflictError:
            existing = self.spec(str(schema["schemaName"]))
            if existing is None or not existing.by_flows:
                raise
            return existing

    def add_columns(self, table: str, new: Sequence[ColumnType]) -> TableSpec:
        """Adds the columns that a table lacks: to both halves, then to its definition."""
        home, layout = self._home, self._home.layout(table)
        with creation_lock(layout, home.settings.lock_timeout_s, home.progress):
            definition = home.definitions.find(table)
            if definition is None:
                raise NotFoundError.named("Table", table, home.table_names())
            missing_columns = new_columns(home.spec_of(definition), new)
            changed = replace(definition, schema_doc=with_columns(definition.schema_doc, missing_columns))
            after = home.spec_of(changed)
            if missing_columns:
                evolve_halves(home, after)
                home.definitions.replace(changed)
        return after


def load_flows(home: Home, path: Path, variables: Mapping[str, str]) -> FlowSession:
    """Reads what the flow file at `path` declares. Nothing runs, and no JVM is started."""
    from hybrid.flow.declared.python_face import lakeflow_modules
    from hybrid.flow.declared.python_file import run_python_file
    from hybrid.flow.declared.sql_file import declare_sql

    readers = {".py": run_python_file, ".sql": declare_sql}
    if path.suffix not in readers:
        raise UsageError(f"{path}: a flow file ends in .py or .sql.")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NotFoundError(f"{path} cannot be read: {error}.") from error
    session = FlowSession(Declaration(str(path)), dict(variables), lambda: home.bench.spark)
    with lakeflow_modules():
        readers[path.suffix](path, text, session)
    session.declaration.warnings += session.unused(text)
    if not session.declaration.flows:
        raise UsageError(f"{path} declares no flow.", hint="See the how-to: Load files once and incrementally.")
    return session


def run_flows(home: Home, session: FlowSession, refresh: Sequence[Flow] = ()) -> list[FlowReport]:
    """Runs every flow of a loaded file, in parallel; flows in `refresh` load everything again.

    Returns a report for each flow, in the order of the file. A flow that fails stops no other.
    """
    from hybrid.flow.declared.python_face import lakeflow_modules
    from hybrid.flow.declared.targets import prepare

    bench, keeper, runs = home.bench, FlowKeeper(home), home.catalog.runs
    assert bench.spark is not None and runs is not None  # created before threads use them
    with lakeflow_modules():
        prepared = prepare(bench, session, keeper)
        session.declaration.warnings += prepared.warnings
        failures = dict(prepared.failures)
        refreshed = [flow for flow in session.declaration.flows if flow in refresh and prepared.is_ready(flow)]
        failures.update(_begin_refreshes(home, session, keeper, refreshed))

        def one(flow: Flow) -> FlowReport:
            return _recorded(home, session, keeper, flow, failures.get(str(flow)), prepared.waiting.get(str(flow)))

        with ThreadPoolExecutor(max_workers=PARALLEL_MAX, thread_name_prefix="flow") as pool:
            return list(pool.map(one, session.declaration.flows))


def _recorded(
    home: Home,
    session: FlowSession,
    keeper: FlowKeeper,
    flow: Flow,
    failure: HybridError | None,
    waiting: str | None,
) -> FlowReport:
    """Runs one flow and records it as a run."""
    try:
        with home.recorded(flow.target, RUN_TYPE, {"flow": flow.name, "kind": flow.kind}) as run:
            if failure is not None:
                raise failure
            if waiting is not None:
                report = FlowReport(flow.target, flow.name, flow.kind, "NOTHING", sentence=waiting)
            else:
                report = FlowRun(home.bench, session, keeper, flow).run()
            run.ended(f"{_said_of(flow.name)}{report.sentence}", did_something=report.state == "DONE")
            return report
    except HybridError as error:
        return failed(flow, error)


def _begin_refreshes(
    home: Home, session: FlowSession, keeper: FlowKeeper, flows: Sequence[Flow]
) -> dict[str, HybridError]:
    """Begins the refresh of flows that have loaded something, table by table. Returns the error of each that failed."""
    from hybrid.flow.declared.refresh import begin_refresh, clear_moved

    failures: dict[str, HybridError] = {}
    for target in dict.fromkeys(flow.target for flow in flows):
        own, layout = [flow for flow in flows if flow.target == target], keeper.layout(target)
        realtime, offline = open_half(layout.half(Half.REALTIME)), open_half(layout.half(Half.OFFLINE))
        loaded = {*all_progress(realtime.realtime), *all_progress(offline.offline)}
        kinds = {flow.name: flow.kind for flow in own if flow.name in loaded}
        if not kinds:
            continue
        try:
            for flow in own:
                refuse_other_kind(flow, flow_state(flow.kind, flow.name, realtime.realtime, offline.offline))
            table = home.table_context(home.table(target))
            for name in begin_refresh(table, kinds):
                session.declaration.warnings.append(
                    f"Segment '{name}' of '{target}' held a correction, which goes with the full refresh. "
                    f"Apply it again if it still holds: hybrid replacement list {target}"
                )
            clear_moved(table)
        except HybridError as error:
            failures.update({str(flow): error for flow in own})
        except Exception as error:  # Spark can raise anything: these flows fail, the others go on
            failures.update({str(flow): told(error, flow, session.declaration.source) for flow in own})
    return failures


@shown_as("{0.flow} of {0.target}: {0.state}")
@dataclass(frozen=True)
class FlowStatus:
    """The status of a flow, from its halves and runs. `state`: IDLE (a once-flow that has run), COMPLETED, RUNNING,
    FAILED, INTERRUPTED, WAITING (a refresh has begun, or it has not run yet).

    `rows`, `rejected` and `files` count what it loaded since its last refresh; `refreshes` counts the refreshes.
    """

    target: str
    flow: str
    type: str
    state: str
    last_run: str | None
    rows: int
    rejected: int
    files: int
    refreshes: int
    result: str | None


def flows_of(home: Home) -> list[FlowStatus]:
    """Every flow that has run in this home, by target and name. Needs no JVM."""
    flow_states: dict[tuple[str, str], FlowState] = {}
    for table in home.table_names():
        if home.spec(table).by_flows:
            layout = home.layout(table)
            realtime = open_half(layout.half(Half.REALTIME)).realtime
            offline = open_half(layout.half(Half.OFFLINE)).offline
            kinds = {name: flow.kind for name, flow in {**all_progress(offline), **all_progress(realtime)}.items()}
            for name, kind in kinds.items():
                flow_states[table, name] = flow_state(kind, name, realtime, offline)
    runs = _newest_runs(home)
    table_names = set(home.table_names())
    keys = {*flow_states, *(key for key in runs if key[0] in table_names)}
    return [_status(key, flow_states.get(key), runs.get(key)) for key in sorted(keys)]


def _newest_runs(home: Home) -> dict[tuple[str, str], RunRecord]:
    newest: dict[tuple[str, str], RunRecord] = {}
    for run in home.catalog.runs.list(kind=RUN_TYPE, limit=_RUNS_MAX):
        newest.setdefault((run.table_name, str(run.arguments.get("flow"))), run)
    return newest


def _status(key: tuple[str, str], state: FlowState | None, run: RunRecord | None) -> FlowStatus:
    brought = state.brought if state else None
    kind = state.kind if state else str(run.arguments.get("kind")) if run else ONCE
    return FlowStatus(
        target=key[0],
        flow=key[1],
        type=kind,
        state=_state_word(kind, state, run),
        last_run=run.started_at if run else (brought.at if brought else None),
        rows=brought.rows if brought else 0,
        rejected=brought.rejected if brought else 0,
        files=brought.files if brought else 0,
        refreshes=state.wanted if state else 0,
        result=(run.result or "").removeprefix(_said_of(key[1])) or None if run else None,
    )


def _said_of(flow: str) -> str:
    """The prefix of a run's sentence: in a list of runs nothing else names the flow."""
    return f"{flow}: "


def _state_word(kind: str, state: FlowState | None, run: RunRecord | None) -> str:
    if run is not None and run.state not in ("DONE", "NOTHING"):
        return run.state
    if state is None or (kind == ONCE and not state.has_run) or (kind != ONCE and state.is_refreshing):
        return "WAITING"
    return "IDLE" if kind == ONCE else "COMPLETED"
