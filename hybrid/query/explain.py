"""EXPLAIN: revision, boundary, segments read and pruned, rows and SQL of a statement, as values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from hybrid.query.plan import QueryPlan, RefPlan
from hybrid.query.prune import FileChoice
from hybrid.query.revision import time_text
from hybrid.query.scan import relation_sql
from hybrid.runtime.text_table import html_table, printable


@dataclass(frozen=True)
class HalfExplanation:
    """One half of one table reference. `pruned` counts the files that are not read, by reason."""

    half: str
    version: int
    segments: Sequence[str]
    files: int
    rows: int
    pruned: Mapping[str, int]


@dataclass(frozen=True)
class TableExplanation:
    """One table reference. `boundary_time_ms` and `frontier` are raw; `boundary_time` is ISO 8601 (UTC) or a word.

    `limit_time_ms` divides the halves: offline rows before it (in mode `exact` without an override: all) and realtime
    rows from it on, or beyond the frontier. Without a boundary `boundary_mode` and the times are None.
    `filters` are the comparisons used to prune files; `tail` is the next offset by partition, `tail_rows` its rows.
    `stream` says how a server that follows the table reads its stream, and whether this statement's tail ends before
    that; None where nothing follows it.
    """

    table: str
    alias: str
    boundary_time: str | None
    boundary_time_ms: int | None
    frontier: Mapping[str, int]
    boundary_mode: str | None
    limit_time: str | None
    limit_time_ms: int | None
    override_time_ms: int | None
    halves: Sequence[HalfExplanation]
    tail: Mapping[str, int]
    tail_rows: int
    stream: str | None
    filters: Sequence[str]
    sql: str


@dataclass(frozen=True)
class Explanation:
    """The explanation of a statement. `sql` is the statement over relations; each table holds its relation's SQL.

    `engine` is the one that runs it, whose SQL that is.
    """

    revision: str
    tables: Sequence[TableExplanation]
    sql: str
    warnings: Sequence[str]
    engine: str = "duckdb"

    def by_spark(self, sql: str, relations: Sequence[str]) -> Explanation:
        """The same plan run by Spark: its SQL, and that of its relations."""
        tables = [replace(table, sql=relation) for table, relation in zip(self.tables, relations, strict=True)]
        return replace(self, tables=tables, sql=sql, engine="spark")

    def __str__(self) -> str:
        return "\n".join(printable(f"{subject}: {text}") for subject, text in explanation_rows(self)[1])

    def __repr__(self) -> str:
        return f"<Explanation: {printable(self.revision)}>"

    def _repr_html_(self) -> str:
        return html_table(*explanation_rows(self))

    def to_json(self) -> dict[str, Any]:
        """The explanation as plain values."""
        return asdict(self)


def explain_plan(plan: QueryPlan, stream_of: Callable[[str], str | None] = lambda table: None) -> Explanation:
    """Explains a plan. `stream_of` says how the stream of a table is read."""
    tables = [_table(ref, _stream_words(ref, stream_of(ref.ref.table))) for ref in plan.refs]
    return Explanation(str(plan.revision), tables, plan.rewritten.sql, list(plan.warnings))


def explanation_rows(explanation: Explanation) -> tuple[list[str], list[tuple[str, ...]]]:
    """The explanation as column names and rows of subject and text, for EXPLAIN PLAN FOR."""
    rows = [("revision", explanation.revision), ("engine", explanation.engine)]
    for table in explanation.tables:
        rows.extend((f"{table.alias}: {subject}", text) for subject, text in _lines(table))
    rows.append(("statement", explanation.sql))
    rows.extend(("warning", warning) for warning in explanation.warnings)
    return ["Subject", "Plan"], list(rows)


def _lines(table: TableExplanation) -> list[tuple[str, str]]:
    lines = [("table", table.table)]
    if table.boundary_time is not None:
        frontier = ", ".join(f"{key}@{offset}" for key, offset in table.frontier.items()) or "none"
        lines.append(("boundary", f"T {table.boundary_time} ({table.boundary_time_ms}), F {frontier}"))
        set_by = "an override" if table.override_time_ms is not None else f"mode {table.boundary_mode}"
        lines.append(("limit", f"{table.limit_time} ({table.limit_time_ms}), by {set_by}"))
    for half in table.halves:
        pruned = "".join(f"; {count} files pruned: {reason}" for reason, count in half.pruned.items())
        lines.append((half.half, f"{half.files} files of {len(half.segments)} segments, {half.rows} rows{pruned}"))
    if table.tail:
        lines.append(("tail", f"{table.tail_rows} rows up to {', '.join(f'{k}@{v}' for k, v in table.tail.items())}"))
    if table.stream is not None:
        lines.append(("stream", table.stream))
    if table.filters:
        lines.append(("filters on statistics", ", ".join(table.filters)))
    return [*lines, ("relation", table.sql)]


def _stream_words(plan: RefPlan, stream: str | None) -> str | None:
    is_capped = stream is not None and plan.pinned.tail.is_capped
    return f"{stream}; the tail of this statement ends at what answers have shown" if is_capped else stream


def _table(plan: RefPlan, stream: str | None) -> TableExplanation:
    halves, effective = plan.pinned.halves, plan.scan.boundary
    boundary = halves.boundary if effective is not None else None
    explanations = []
    if halves.offline is not None and plan.reads_offline:
        explanations.append(_half("OFFLINE", halves.offline.version, plan.offline))
    if halves.realtime is not None and plan.reads_realtime:
        explanations.append(_half("REALTIME", halves.realtime.version, plan.realtime))
    return TableExplanation(
        table=plan.ref.written,
        alias=plan.ref.alias,
        boundary_time=time_text(boundary.time_ms) if boundary else None,
        boundary_time_ms=boundary.time_ms if boundary else None,
        frontier={str(key): offset for key, offset in sorted(boundary.frontier.items())} if boundary else {},
        boundary_mode=boundary.mode.value if boundary else None,
        limit_time=time_text(effective.limit_ms) if effective else None,
        limit_time_ms=effective.limit_ms if effective else None,
        override_time_ms=boundary.override_ms if boundary else None,
        halves=explanations,
        tail={str(key): offset for key, offset in sorted(plan.pinned.tail.positions.items())}
        if plan.reads_realtime
        else {},
        tail_rows=plan.tail_rows,
        stream=stream if plan.reads_realtime else None,
        filters=[f"{item.column} {item.op} {', '.join(map(repr, item.values))}" for item in plan.comparisons],
        sql=relation_sql(plan.scan),
    )


def _half(name: str, version: int, choice: FileChoice) -> HalfExplanation:
    segments = list(dict.fromkeys(file.segment for file in choice.read))
    return HalfExplanation(
        name, version, segments, len(choice.read), sum(file.rows for file in choice.read), choice.pruned
    )
