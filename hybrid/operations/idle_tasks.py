"""What a user does next after a task that had nothing to do: another sentence of its report."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half
from hybrid.operations.lag import lag_of
from hybrid.operations.pauses import is_paused
from hybrid.operations.segments import segments_of_half
from hybrid.progress import counted

if TYPE_CHECKING:
    from hybrid.home.home import Home
    from hybrid.home.table_ref import TableRef
    from hybrid.move.merging.report import MergeReport
    from hybrid.move.move import MoveReport
    from hybrid.move.optimize import OptimizeReport


def after_move(home: Home, table: TableRef, report: MoveReport) -> MoveReport:
    """The report, with the messages that wait in Kafka where nothing moved.

    A server's own runs do not ask Kafka: its ingestion does.
    """
    if report.rows_read or home.is_scheduled:
        return report
    return replace(report, sentence=report.sentence + _waiting(home, table))


def after_merge(table: TableRef, report: MergeReport) -> MergeReport:
    """The report of a merge or a compaction, with the command that fills an empty OFFLINE half."""
    if report.merged or table.spec.move is None or table.half(Half.OFFLINE).files:
        return report
    return replace(
        report, sentence=f"{report.sentence} No row is in OFFLINE yet: `hybrid move {table.name}` moves rows."
    )


def after_optimize(table: TableRef, report: OptimizeReport) -> OptimizeReport:
    """The report, with the command that seals segments where none is sealed."""
    if report.segments:
        return report
    states = {segment.state for segment in segments_of_half(table, Half.REALTIME)}
    if states != {"CONSUMING"}:
        return report
    seal = f"All of its segments are consuming: `hybrid segment seal {table.name}` seals them."
    return replace(report, sentence=f"{report.sentence} {seal}")


def _waiting(home: Home, table: TableRef) -> str:
    """A sentence on messages that are not ingested yet, with the command that brings them; empty without any."""
    from hybrid.operations.connectors.progress import pause_offsets  # with the catalog's database library

    stream = table.spec.stream
    if stream is None:
        return ""
    behind, state, hint, _ = lag_of(home, table)
    if behind is None and state != "OK":
        return f" What waits in {stream.words} is unknown: {state}{f' `{hint}`' if hint else ''}"
    if not behind:
        return ""
    verb = "is" if behind == 1 else "are"
    go = f"`hybrid ingest {table.name}` brings {'it' if behind == 1 else 'them'}"
    if is_paused(home, table.name) or pause_offsets(home, table.name, table.spec.connectors) is not None:
        go = f"ingestion is paused, and `hybrid connector start {table.name}` lets it continue"
    return f" {counted(behind, 'message')} in {stream.words} {verb} not ingested yet: {go}."
