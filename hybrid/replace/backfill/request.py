"""The request of a backfill, parsed and checked against the table before anything is changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import lcm

from hybrid.config.expectations import Expectation
from hybrid.config.table_config import ARRIVED, BoundaryMode, MergeLevel, MergeType, TableSpec
from hybrid.errors import SpecError, UsageError
from hybrid.files.inputs import InputFile
from hybrid.formats.csv_format import CsvFormat
from hybrid.lake.refetched_rows import RefetchedRows
from hybrid.runtime.json_values import utc
from hybrid.table.boundary import Boundary
from hybrid.table.buckets import bucket_of
from hybrid.table.correction_window import CorrectionWindow, refuse_divided, rounded_to
from hybrid.table.state import OfflineState

BUCKETS_MAX = 100_000
_DAY_MS = 86_400_000


class ChangeKind(StrEnum):
    """UPDATE sets other values in matching rows, DELETE removes them, ROWS replaces all rows by rows from outside.

    REJECTED adds the rejected rows that convert now. KAFKA replaces the rows of the stream by what Kafka still holds.
    """

    UPDATE = "update"
    DELETE = "delete"
    ROWS = "rows"
    REJECTED = "rejected"
    KAFKA = "kafka"


@dataclass(frozen=True)
class Request:
    """The request of a backfill. `window` None is a whole table without a time column.

    `where` and `assignments` are Spark SQL. `held` is what Kafka holds, for kind KAFKA.
    """

    kind: ChangeKind
    window: CorrectionWindow | None
    where: str | None = None
    assignments: Mapping[str, str] = field(default_factory=dict)
    files: tuple[InputFile, ...] = ()
    csv_format: CsvFormat = field(default_factory=CsvFormat)
    expectations: tuple[Expectation, ...] = ()
    held: RefetchedRows | None = None


def window_of(spec: TableSpec, boundary: Boundary, start: int | None, end: int | None) -> CorrectionWindow | None:
    """The window of a request that gives both ends; None on a table without a time column.

    Its buckets are those of the table's moves, or longer where a merge rounds times to more. A bucket must not divide
    rows that were rounded to one time: the old rows would stay visible beside the new ones. UsageError for an invalid
    window, or for more than `BUCKETS_MAX` buckets.
    """
    if spec.time_column is None:
        if start is not None or end is not None:
            raise UsageError(f"Table '{spec.name}' has no time column, so a backfill of it takes no --from and --to.")
        return None
    assert start is not None and end is not None, "the whole table is `whole_window`"
    if start >= end:
        raise UsageError(f"--from {utc(start)} does not lie before --to {utc(end)}.")
    step_ms = rounded_to(spec, boundary)
    refuse_divided(spec, step_ms, "--from, --to", start, end)
    window = CorrectionWindow(start, end, lcm(spec.move.bucket_ms if spec.move else _DAY_MS, step_ms))
    if window.bucket_count > BUCKETS_MAX:
        raise UsageError(f"From --from to --to are {window.bucket_count} buckets; {BUCKETS_MAX} are the most.")
    return window


def whole_window(
    spec: TableSpec, boundary: Boundary, start: int | None, end: int | None, times: tuple[int, int] | None
) -> CorrectionWindow | None:
    """The window of a request without `start` or `end`, or both: there it reaches as far as the rows do.

    `times` are the first and the last time of stored rows; None: there are none. Where these lie so far apart that
    there would be too many buckets, buckets are longer.
    """
    if spec.time_column is None:
        return window_of(spec, boundary, start, end)
    step_ms = rounded_to(spec, boundary)
    refuse_divided(spec, step_ms, "--from, --to", *(edge for edge in (start, end) if edge is not None))
    period_ms = lcm(spec.move.bucket_ms if spec.move else _DAY_MS, step_ms)
    first, last = times or (0 if end is None else end - 1, 0 if start is None else start)
    low = start if start is not None else bucket_of(min(first, last if end is None else end - 1), period_ms).start
    high = end if end is not None else bucket_of(max(last, low), period_ms).end
    window = CorrectionWindow(low, high, period_ms)
    return replace(window, period_ms=period_ms * max(1, -(-window.bucket_count // BUCKETS_MAX)))


def refuse_deciding(spec: TableSpec, assignments: Mapping[str, str]) -> None:
    """UsageError for an update of a column that decides a row's place or which version of its key wins."""
    roles = {name: "part of the primary key" for name in spec.schema.primary_key}
    if spec.time_column:
        roles[spec.time_column] = "the time column"
    if spec.upsert is not None:
        roles |= dict.fromkeys(spec.upsert.comparison_columns, "what says which version of a key wins")
        if spec.upsert.delete_column:
            roles[spec.upsert.delete_column] = "what marks deletes"
    for name in assignments:
        if name in roles:
            raise UsageError(
                f"--update {name}: '{name}' of table '{spec.name}' is {roles[name]}, so an update would make other "
                "rows of these.",
                hint="Remove the rows with hybrid backfill plan TABLE --delete, and bring the right ones with --input.",
            )


def require_correctable(spec: TableSpec, offline: OfflineState, kind: ChangeKind) -> None:
    """SpecError when rows of the table cannot be corrected in this way. `offline` is the state of that half."""
    if spec.nets_deletes:
        raise SpecError(
            f"Table '{spec.name}' has no primary key, and each delete takes an equal row away: a row "
            "that was corrected would no longer be equal to its delete.",
            hint="Send what is to change to where the rows come from, as a delete and an insert.",
        )
    if kind is ChangeKind.KAFKA:
        _require_as_read(spec, offline)
    latest = spec.upsert is not None and spec.upsert.comparison_column == ARRIVED and not spec.upsert.first_wins
    if kind is ChangeKind.ROWS and latest:
        raise SpecError(
            f"Table '{spec.name}' shows the version of a key that arrived last: rows from files would arrive now, and "
            "win over newer versions in other buckets.",
            hint="Correct rows that are there with hybrid backfill plan TABLE --update or --delete, or "
            "send the right ones to the topic.",
        )


def _require_as_read(spec: TableSpec, offline: OfflineState) -> None:
    """SpecError when OFFLINE does not hold rows as read from the stream, or shows them beside REALTIME."""
    for task in (spec.move, *spec.merge_levels):
        if task is not None and not task.keeps_rows:
            who = f"Merges ({task.name})" if isinstance(task, MergeLevel) else "Moves"
            done = "round times" if task.merge_type is MergeType.CONCAT else f"merge rows ({task.merge_type})"
            raise _not_as_read(f"{who} of table '{spec.name}' {done}")
    if offline.rolled or offline.boundary.step_ms > 1:
        done = "rolled up" if offline.rolled else "rounded to other times"
        raise _not_as_read(f"Rows of table '{spec.name}' were {done} before its config changed")
    if spec.upsert is not None and spec.upsert.first_wins:
        raise SpecError(
            f"On dedup table '{spec.name}' corrected rows stand in the places of those that they correct: what Kafka "
            "holds would undo them.",
            hint="hybrid backfill plan ... --input or --sql",
        )
    if spec.boundary_mode is BoundaryMode.PINOT:
        raise SpecError(
            f"The rows of '{spec.name}' are pushed to OFFLINE from outside (mode pinot), not moved from its stream.",
            hint="hybrid backfill plan ... --input or --sql",
        )


def _not_as_read(why: str) -> SpecError:
    """The error for a row that combines several: it has the coordinates of only one of them."""
    return SpecError(
        f"{why}: what Kafka holds is not what OFFLINE holds.", hint="hybrid backfill plan ... --input or --sql"
    )
