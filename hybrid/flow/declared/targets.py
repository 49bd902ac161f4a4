"""The tables that flows append to: found, or created with the columns that their flows bring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hybrid.errors import ConflictError, HybridError, SpecError, suggestion
from hybrid.flow.declared.binding import NothingNew, OnceBinding, StreamBinding
from hybrid.flow.declared.convert import ColumnType, column_types
from hybrid.flow.declared.documents import table_documents, unified
from hybrid.flow.declared.failures import told
from hybrid.flow.declared.frames import parse_ddl
from hybrid.flow.declared.model import Declaration, Flow, FlowTable
from hybrid.flow.declared.session import FlowSession, in_session
from hybrid.flow.declared.shape import frame_of
from hybrid.lake.layout import TableLayout
from hybrid.lake.workbench import Workbench
from hybrid.spec.table_config import TableSpec


class Keeper(Protocol):
    """The tables of a home, as flows need them."""

    def names(self) -> list[str]:
        """All tables."""

    def spec(self, table: str) -> TableSpec | None:
        """A table, or None."""

    def layout(self, table: str) -> TableLayout:
        """Where its halves lie."""

    def create(self, schema: Mapping[str, Any], configs: Sequence[Mapping[str, Any]], source: str) -> TableSpec:
        """Creates a table, unless somebody else was first."""

    def add_columns(self, table: str, new: Sequence[ColumnType]) -> TableSpec:
        """Adds columns that it has not yet: to both halves, then to its definition."""


@dataclass(frozen=True)
class Prepared:
    """Which flows can run, what is to be said of those that cannot, and of the tables."""

    ready: Sequence[Flow]
    failures: Mapping[str, HybridError]
    waiting: Mapping[str, str]
    warnings: Sequence[str]


def prepare(bench: Workbench, session: FlowSession, keeper: Keeper) -> Prepared:
    """Finds or creates every target. `failures` and `waiting` (sentences) are by the text of the flow."""
    declaration = session.declaration
    failures: dict[str, HybridError] = {}
    waiting: dict[str, str] = {}
    warnings: list[str] = []
    for target in declaration.targets():
        flows = [flow for flow in declaration.flows if flow.target == target]
        try:
            _prepare(bench, session, keeper, target, flows, failures, waiting, warnings)
        except HybridError as error:
            failures.update({str(flow): failures.get(str(flow), error) for flow in flows})
    warnings += [
        f"{declaration.source}: table '{name}' has no flow, so nothing is created."
        for name in declaration.tables
        if name not in declaration.targets()
    ]
    ready = [flow for flow in declaration.flows if str(flow) not in failures and str(flow) not in waiting]
    return Prepared(ready, failures, waiting, warnings)


def _prepare(
    bench: Workbench,
    session: FlowSession,
    keeper: Keeper,
    target: str,
    flows: Sequence[Flow],
    failures: dict[str, HybridError],
    waiting: dict[str, str],
    warnings: list[str],
) -> None:
    declared, spec = session.declaration.tables.get(target), keeper.spec(target)
    if spec is not None:
        _check_known(spec, declared, warnings)
        return
    if declared is None:
        raise _no_target(session.declaration, keeper, target, flows[0])
    columns = [_given(bench, declared)] if declared.schema is not None else []
    if not columns:
        for flow in flows:
            try:
                columns.append(_brought(bench, session, flow))
            except NothingNew as nothing:
                waiting[str(flow)] = (
                    f"Nothing to do: there is no file to read at '{nothing.source.path}' yet, so that the columns of "
                    f"'{target}' are not known."
                )
            except HybridError as error:
                failures[str(flow)] = error
            except Exception as error:  # whatever Spark or the user's function raises
                failures[str(flow)] = told(error, flow, session.declaration.source)
    if columns:
        schema, configs = table_documents(declared, unified(columns))
        keeper.create(schema, configs, f"{session.declaration.source}: {declared.place}")
        bench.progress.say(f"Created table '{target}'.")
        for flow in flows:
            waiting.pop(str(flow), None)


def _check_known(spec: TableSpec, declared: FlowTable | None, warnings: list[str]) -> None:
    if not spec.by_flows:
        raise ConflictError(
            f"Table '{spec.name}' is not kept by flows: its rows come by other ways. Nothing was changed.",
            hint="Give the flow's table another name.",
        )
    given = declared.properties.get("hybrid.timeColumn") if declared else None
    if given is not None and given.lower() != (spec.time_column or "").lower():
        has = f"'{spec.time_column}'" if spec.time_column else "none"
        raise SpecError(
            f"Table '{spec.name}' was created with time column {has}; '{given}' cannot take its place.",
            hint="Create a table of another name.",
        )


def _no_target(declaration: Declaration, keeper: Keeper, target: str, flow: Flow) -> SpecError:
    known = [*declaration.tables, *keeper.names()]
    return SpecError(
        f"{declaration.source}: {flow.place}: flow '{flow.name}' appends to table '{target}', which nobody creates."
        f"{suggestion(target, known)}",
        hint=f"Add create_streaming_table('{target}'), in SQL CREATE STREAMING TABLE {target};",
    )


def _given(bench: Workbench, table: FlowTable) -> list[ColumnType]:
    return column_types(parse_ddl(bench.spark, table.schema, f"{table.place}: schema of '{table.name}'"))


def _brought(bench: Workbench, session: FlowSession, flow: Flow) -> list[ColumnType]:
    """The columns that a flow's first rows have."""
    binding = OnceBinding(flow.name, bench.spark) if flow.once else StreamBinding(flow.name, bench.spark)
    with in_session(session, binding):
        return column_types(frame_of(flow, flow.query()).schema)
