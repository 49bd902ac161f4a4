"""The tables that flows append to: existing ones, or new ones with the columns of their flows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from hybrid.config.table_config import TableSpec
from hybrid.errors import ConflictError, HybridError, SpecError, suggestion
from hybrid.flow.declared.binding import Bound, NothingNew, OnceBinding, StreamBinding, refuse_unnamed
from hybrid.flow.declared.convert import ColumnType, column_types
from hybrid.flow.declared.documents import table_documents, unified
from hybrid.flow.declared.flow_errors import told
from hybrid.flow.declared.model import Declaration, Flow, FlowTable
from hybrid.flow.declared.reader import parse_ddl
from hybrid.flow.declared.session import FlowSession, in_session
from hybrid.flow.declared.shape import frame_of
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.layout import TableLayout
from hybrid.progress import counted
from hybrid.schema.schema import FieldSpec
from hybrid.schema.types import DataType

_SHOWN_MAX = 20


class Keeper(Protocol):
    """The tables of a home, as flows need them."""

    def names(self) -> list[str]:
        """The names of all tables."""

    def spec(self, table: str) -> TableSpec | None:
        """The definition of a table, or None."""

    def layout(self, table: str) -> TableLayout:
        """The folders of its halves."""

    def create(self, schema: Mapping[str, Any], configs: Sequence[Mapping[str, Any]], source: str) -> TableSpec:
        """Creates a table, unless another process did first."""

    def add_columns(self, table: str, new: Sequence[ColumnType]) -> TableSpec:
        """Adds columns that it lacks: to both halves, then to its definition."""


@dataclass
class Prepared:
    """Flows that cannot run (`failures`) or need not (`waiting`, a sentence), each by the flow's text; and warnings."""

    failures: dict[str, HybridError] = field(default_factory=dict)
    waiting: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def is_ready(self, flow: Flow) -> bool:
        """Whether the flow can run."""
        return str(flow) not in self.failures and str(flow) not in self.waiting


def prepare(bench: CommitContext, session: FlowSession, keeper: Keeper) -> Prepared:
    """Finds or creates every target of a flow file."""
    declaration, prepared = session.declaration, Prepared()
    for target in declaration.targets():
        _Target(bench, session, keeper, target, prepared).prepare()
    prepared.warnings += [
        f"{declaration.source}: table '{name}' has no flow, so nothing is created."
        for name in declaration.tables
        if name not in declaration.targets()
    ]
    return prepared


@dataclass
class _Target:
    bench: CommitContext
    session: FlowSession
    keeper: Keeper
    name: str
    found: Prepared

    @property
    def _flows(self) -> list[Flow]:
        return [flow for flow in self.session.declaration.flows if flow.target == self.name]

    def prepare(self) -> None:
        """Finds or creates the table. An error fails its flows."""
        try:
            self._find_or_create()
        except HybridError as error:
            for flow in self._flows:
                self.found.failures.setdefault(str(flow), error)

    def _find_or_create(self) -> None:
        declared, spec = self.session.declaration.tables.get(self.name), self.keeper.spec(self.name)
        if spec is not None:
            _check_known(spec, declared)
            return
        if declared is None:
            raise _no_target(self.session.declaration, self.keeper, self.name, self._flows[0])
        brought = self._brought() if declared.schema is None else []
        columns = [part for _, part in brought] if declared.schema is None else [_given(self.bench, declared)]
        if columns:
            schema, configs = table_documents(declared, unified(columns))
            created = self.keeper.create(schema, configs, f"{self.session.declaration.source}: {declared.place}")
            self.bench.progress.say(f"Created table '{self.name}' with {_listed(created.schema.fields)}.")
            for flow in self._flows:
                self.found.waiting.pop(str(flow), None)
            texts = [field.name for field in created.schema.fields if field.data_type is DataType.STRING]
            for binding, _ in brought:
                self.found.warnings += binding.doubts(texts)

    def _brought(self) -> list[tuple[Bound, list[ColumnType]]]:
        """What each flow reads first, and its columns. Flows without a file, or that fail, are noted."""
        columns = []
        for flow in self._flows:
            try:
                columns.append(_columns_of(self.bench, self.session, flow))
            except NothingNew as nothing:
                self.found.waiting[str(flow)] = (
                    f"Nothing to do: there is no file to read at '{nothing.source.path}' yet, so that the columns of "
                    f"'{self.name}' are not known."
                )
            except HybridError as error:
                self.found.failures[str(flow)] = error
            except Exception as error:  # Spark or the user's function may raise anything
                self.found.failures[str(flow)] = told(error, flow, self.session.declaration.source)
        return columns


def _listed(fields: Sequence[FieldSpec]) -> str:
    """Columns with their types, as `id LONG, tags STRING[]`."""
    more = f" and {counted(len(fields) - _SHOWN_MAX, 'more column')}" if len(fields) > _SHOWN_MAX else ""
    return ", ".join(f"{field.name} {field.type_name}" for field in fields[:_SHOWN_MAX]) + more


def _check_known(spec: TableSpec, declared: FlowTable | None) -> None:
    if not spec.by_flows:
        raise ConflictError(
            f"Table '{spec.name}' is not kept by flows: its rows come by other ways. Nothing was changed.",
            hint="Give the flow's table another name.",
        )
    time_column = declared.properties.get("hybrid.timeColumn") if declared else None
    if time_column is not None and time_column.lower() != (spec.time_column or "").lower():
        has = f"'{spec.time_column}'" if spec.time_column else "none"
        raise SpecError(
            f"Table '{spec.name}' was created with time column {has}; '{time_column}' cannot take its place.",
            hint="Create a table of another name.",
        )


def _no_target(declaration: Declaration, keeper: Keeper, target: str, flow: Flow) -> SpecError:
    names = [*declaration.tables, *keeper.names()]
    return SpecError(
        f"{declaration.source}: {flow.place}: flow '{flow.name}' appends to table '{target}', which nobody creates."
        f"{suggestion(target, names)}",
        hint=f"Add create_streaming_table('{target}'), in SQL CREATE STREAMING TABLE {target};",
    )


def _given(bench: CommitContext, table: FlowTable) -> list[ColumnType]:
    return column_types(parse_ddl(bench.spark, table.schema, f"{table.place}: schema of '{table.name}'"))


def _columns_of(bench: CommitContext, session: FlowSession, flow: Flow) -> tuple[Bound, list[ColumnType]]:
    """What a flow reads first, and the columns of these rows."""
    words = flow.name, bench.spark, session.inferred
    binding = OnceBinding(*words) if flow.once else StreamBinding(*words)
    with in_session(session, binding):
        columns = column_types(frame_of(flow, flow.query()).schema)
    refuse_unnamed(binding, [column.name for column in columns])
    return binding, columns
