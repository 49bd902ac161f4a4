"""Plans a backfill: its request and window, the rows that have to be moved first, the staged correction.

A plan follows two other operations: it commits what Kafka holds, then moves the rows of the window.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config.table_config import BoundaryMode, Half, TableSpec
from hybrid.errors import ConflictError, SpecError, UsageError
from hybrid.lake.commit_context import new_act_id
from hybrid.lake.log import HalfSnapshot
from hybrid.lake.table_context import TableContext
from hybrid.operations.backfill_change import BackfillChange
from hybrid.operations.ingestion import catch_up
from hybrid.replace.backfill.base import stored_times
from hybrid.replace.backfill.request import (
    ChangeKind,
    Request,
    refuse_deciding,
    require_correctable,
    whole_window,
    window_of,
)
from hybrid.replace.swap import require_offline
from hybrid.schema.moment import parse_moment
from hybrid.sql.redaction import without_constants
from hybrid.table.plans import Plan

if TYPE_CHECKING:
    from hybrid.home.home import Home
    from hybrid.home.table_ref import TableRef
    from hybrid.lake.refetched_rows import RefetchedRows
    from hybrid.sql.redaction import Redaction
    from hybrid.table.correction_window import CorrectionWindow

_MOVES_MAX = 3


class BackfillPlanning:
    """The planning of one change of a table."""

    def __init__(self, home: Home, table: TableRef, change: BackfillChange) -> None:
        self._home, self._table, self._change = home, table, change

    def plan(self, redaction: Redaction | None, erasure: str | None) -> Plan:
        """Plans the change and stages its rows; see `Backfills.plan`."""
        from hybrid.expression.parse import notes_of
        from hybrid.replace.backfill.planning import plan_backfill

        table, change = self._table, self._change
        require_offline(table.spec)
        offline = table.half(Half.OFFLINE).offline
        edges = _edges(table.spec, change, self._home.bench.now_ms())
        is_whole = table.spec.time_column is not None and None in edges
        given = None if is_whole else window_of(table.spec, offline.boundary, *edges)
        request = self._request(given)
        require_correctable(table.spec, offline, request.kind)
        recorded = _recorded(change.named(self._home.input_rules), redaction)

        def work() -> Plan:
            warnings = catch_up(self._home, table)
            window = self._whole(edges) if is_whole else given
            halves, late = self._move_first(window)
            spec = self._home.spec(table.name)  # read after the halves, so that it has every column of their rows
            notes = notes_of(change.update) if change.update is not None else ()
            blank = _blank(recorded, spec, halves, (*warnings, *late, *notes), erasure)
            held = self._held(spec, halves[1]) if change.from_kafka else request.held
            ready_request = replace(request, window=window, held=held)
            with self._with_rows(ready_request, halves[0]) as (ready, inputs):
                plan = replace(blank, created_at=self._home.bench.now_iso(), inputs=inputs)
                return plan_backfill(TableContext(self._home.bench, spec, table.layout), halves, ready, plan)

        return self._home.run_recorded(table.name, "backfill-plan", work)

    def _whole(self, edges: tuple[int | None, int | None]) -> CorrectionWindow | None:
        """The window of a request that leaves out an edge, as of the newest versions."""
        halves, spec = _pinned(self._table), self._table.spec
        times = stored_times(self._home.bench, spec, halves)
        return whole_window(spec, halves[0].offline.boundary, *edges, times)

    def _held(self, spec: TableSpec, realtime: HalfSnapshot | None) -> RefetchedRows:
        """The messages that Kafka still holds of the offsets committed in this version."""
        from hybrid.ingest.refetch import held_rows

        assert realtime is not None, "a table with a stream has a REALTIME half"
        return held_rows(self._home.bench, spec, realtime.realtime)

    @contextmanager
    def _with_rows(
        self, request: Request, offline: HalfSnapshot
    ) -> Iterator[tuple[Request, tuple[Mapping[str, object], ...]]]:
        """The request with the rows of its statement, if it has one, and the inputs that lineage records.

        The statement sees committed rows only. ConflictError when rows of the window are not moved yet: a corrected
        copy would be added beside such a row.
        """
        from hybrid.operations.job_input import answered
        from hybrid.query.tail import NoTail
        from hybrid.replace.backfill.base import unmoved
        from hybrid.replace.backfill.inputs import inspect_input

        table, sql = self._table, self._change.sql
        if sql is None:
            yield request, tuple(file.to_json() for file in request.files)
            return
        with answered(self._home, table.name, sql, NoTail()) as (path, statement):
            reads_table = statement.offline_version is not None
            moves = reads_table and table.spec.move is not None
            late = moves and unmoved(self._home.bench, table.spec, _pinned(table), request.window)
            if late or (reads_table and statement.offline_version != offline.version):
                raise ConflictError(
                    f"Rows of '{table.name}' were committed or moved while the statement was answered. "
                    "Nothing was changed.",
                    hint="Plan it again.",
                )
            files, csv_format = inspect_input(table.spec, path)
            input_record = {"statement": statement.sql, "revision": statement.revision}
            yield replace(request, files=files, csv_format=csv_format), (input_record,)

    def _request(self, window: CorrectionWindow | None) -> Request:
        """The change as a request. UsageError unless it names exactly one correction."""
        from hybrid.ingest.batch import stream_of
        from hybrid.replace.backfill.inputs import inspect_input
        from hybrid.replace.job_checks import with_asked
        from hybrid.sql.row_sql import row_assignments, row_condition

        spec, change = self._table.spec, self._change
        rows = {
            "--input": change.input is not None,
            "--sql": change.sql is not None,
            "--from-rejected": change.from_rejected,
            "--from-kafka": change.from_kafka,
        }
        corrections = {"--update": change.update is not None, "--delete": change.delete, **rows}
        given = [option for option, is_given in corrections.items() if is_given]
        if len(given) != 1:
            found = f"given are {' and '.join(given)}" if given else "none is given"
            raise UsageError(f"What is to be corrected? Give one of {', '.join(corrections)}; {found}.")
        if any(rows.values()) and change.where is not None:
            raise UsageError("--where goes with --update and --delete; the others bring the rows themselves.")
        if change.from_rejected and Half.REALTIME not in spec.halves:
            raise SpecError(f"Table '{spec.name}' has no REALTIME half, which alone rejects rows.")
        now_ms = self._home.bench.now_ms()
        expected = with_asked(spec, (), change.expect)
        where = row_condition(change.where, spec, "--where", now_ms=now_ms) if change.where is not None else None
        if change.input is not None:
            files, csv_format = inspect_input(spec, Path(change.input), self._home.input_rules)
            return Request(ChangeKind.ROWS, window, files=files, csv_format=csv_format, expectations=expected)
        if change.sql is not None:
            return Request(ChangeKind.ROWS, window, expectations=expected)
        if change.from_rejected:
            return Request(ChangeKind.REJECTED, window, expectations=expected)
        if change.from_kafka:
            stream_of(spec)
            return Request(ChangeKind.KAFKA, window, expectations=expected)
        if change.delete:
            return Request(ChangeKind.DELETE, window, where, expectations=expected)
        assert change.update is not None
        assignments = row_assignments(change.update, spec, "--update", now_ms=now_ms)
        refuse_deciding(spec, assignments)
        return Request(ChangeKind.UPDATE, window, where, assignments, expectations=expected)

    def _move_first(
        self, window: CorrectionWindow | None
    ) -> tuple[tuple[HalfSnapshot, HalfSnapshot | None], list[str]]:
        """Moves the rows of the window that are still visible in REALTIME. Returns the halves after it, and warnings.

        ConflictError when rows remain in REALTIME that the backfill would not correct.
        """
        from hybrid.move.move import run_move
        from hybrid.move.plan import Reach
        from hybrid.replace.backfill.base import unmoved

        table, spec, bench = self._table, self._table.spec, self._home.bench
        reach = Reach(None, window.end if window is not None else None)
        for turn in range(_MOVES_MAX + 1):
            halves = _pinned(table)
            rows = unmoved(bench, spec, halves, window)
            if not rows:
                return halves, []
            if spec.move is None and halves[0].offline.boundary.mode is BoundaryMode.PINOT:
                return halves, [f"{rows} rows of the window are in REALTIME, which outside jobs push past: they stay."]
            _refuse_beyond_limit(spec, halves[0], rows)
            if spec.move is None or turn == _MOVES_MAX:
                break
            newest = partial(self._home.spec, table.name)
            report = run_move(self._home.table_context(table), reach=reach, newest=newest)
            bench.progress.say(f"Before it is planned: {report.sentence}")
        raise ConflictError(
            f"{rows} rows of the window are in REALTIME of '{spec.name}' and cannot be moved, so a backfill would not "
            "correct them. Nothing was changed.",
            hint="Give the table a RealtimeToOfflineSegmentsTask, or plan again.",
        )


def _recorded(change: BackfillChange, redaction: Redaction | None) -> BackfillChange:
    """The change as records keep it."""
    if redaction is None or change.where is None:
        return change
    return replace(change, where=redaction.of(without_constants(change.where)))


def _blank(
    change: BackfillChange,
    spec: TableSpec,
    halves: tuple[HalfSnapshot, HalfSnapshot | None],
    warnings: tuple[str, ...],
    erasure: str | None,
) -> Plan:
    """A plan without buckets and units, which planning fills in."""
    offline, realtime = halves
    return Plan(
        id=new_act_id("backfill"),
        table=spec.name,
        created_at="",
        change=change.words,
        request=asdict(change) if erasure is None else {**asdict(change), "erasure": erasure},
        table_id=offline.table_id,
        offline_version=offline.version,
        realtime_version=realtime.version if realtime is not None else None,
        base_revision=_revision(spec.name, halves),
        fresh_topic="",
        buckets=(),
        units=(),
        warnings=warnings,
        reason=change.reason,
        user=change.user,
    )


def _edges(spec: TableSpec, change: BackfillChange, now_ms: int) -> tuple[int | None, int | None]:
    """The begin and end of a change in epoch ms; None where it gives none. UsageError without a time column."""
    edges: list[int | None] = []
    for text, option in ((change.start, "--from"), (change.end, "--to")):
        if text is not None and spec.time_field is None:
            raise UsageError(f"Table '{spec.name}' has no time column, so a backfill of it takes no --from and --to.")
        field = spec.time_field
        edges.append(parse_moment(text, field, option, now_ms) if text is not None and field else None)
    return edges[0], edges[1]


def _refuse_beyond_limit(spec: TableSpec, offline: HalfSnapshot, left: int) -> None:
    """ConflictError where an override or Pinot's mode keeps the rows visible in REALTIME: a move cannot change that."""
    boundary = offline.offline.boundary
    if boundary.override_ms is None and boundary.mode is not BoundaryMode.PINOT:
        return
    hint = "End the window before it"
    if boundary.override_ms is not None:
        hint += f", or: hybrid boundary clear {spec.name}"
    raise ConflictError(
        f"{left} rows of the window lie past the limit between the halves of '{spec.name}', where queries show them "
        "from REALTIME. Nothing was changed.",
        hint=f"{hint}.",
    )


def _pinned(table: TableRef) -> tuple[HalfSnapshot, HalfSnapshot | None]:
    from hybrid.query.revision import pin_halves

    halves = pin_halves(table.spec, table.layout)
    assert halves.offline is not None
    return halves.offline, halves.realtime


def _revision(name: str, halves: tuple[HalfSnapshot, HalfSnapshot | None]) -> str:
    from hybrid.query.revision import TableRevision

    offline, realtime = halves
    return str(TableRevision(name, offline.version, realtime.version if realtime else None, offline.offline.boundary))
