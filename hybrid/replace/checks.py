"""Checks staged rows against expectations before anything becomes visible.

All that is said of single rows is counted in one pass; each `unique` takes one more; samples are read only where rows
fail. A row that a `drop` leaves out is out: the other expectations do not look at it, and of equal rows `unique` keeps
the one that arrived first. Delete markers are not checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hybrid.config.expectations import Expectation, ExpectationKind, OnFailure
from hybrid.config.table_config import TableSpec
from hybrid.replace.check_result import CheckResult, CheckState, change_result, result_of
from hybrid.replace.check_rows import (
    count_failing,
    failing_sql,
    repeated,
    repeated_sample,
    sample_of,
    spark_errors,
    without_dropped,
    without_repeated,
)
from hybrid.sql.expectation_sql import ROW_KINDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Checked:
    """`frame` holds the rows that are left; `dropped` is how many are not; `results` stand in the expectations' order.

    Row for row `frame` is what was given, hidden columns and delete markers included.
    """

    frame: DataFrame
    results: tuple[CheckResult, ...]
    dropped: int = 0

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        """Those that stop what is going on."""
        return tuple(result for result in self.results if result.state is CheckState.FAILED)


def check(
    spec: TableSpec,
    frame: DataFrame,
    expectations: Sequence[Expectation],
    rows_before: int | None,
    *,
    now_ms: int | None = None,
) -> Checked:
    """Looks at the rows of `frame`: the user's columns by name, and hidden ones (`table.columns`), OP among them.

    `rows_before` is how many rows they stand in place of (None: it is not known, and no change of it fails). `now_ms`
    is what now() in a condition means (None: it is refused). SpecError for an expectation that does not fit the
    table, DataError when Spark fails on a row; that rows fail is no error here.
    """
    what = f"The expectations of table '{spec.name}' cannot be looked at"
    with spark_errors(what, hint="TRY_CAST gives null where CAST fails."):
        found, kept, rows, dropped = _of_rows(spec, frame, _of(expectations, ROW_KINDS), now_ms)
        for one in _of(expectations, {ExpectationKind.UNIQUE}):
            count = repeated(kept, one.columns)
            sample = repeated_sample(spec, kept, one.columns) if count else []
            found[one] = result_of(one, count, rows, sample)
            if count and one.on_failure is OnFailure.DROP:
                kept, rows, dropped = without_repeated(kept, one.columns), rows - count, dropped + count
    for one in _of(expectations, {ExpectationKind.ROW_COUNT_CHANGE}):
        found[one] = change_result(one, rows_before, rows)
    return Checked(kept, tuple(found[one] for one in expectations), dropped)


def _of_rows(
    spec: TableSpec, frame: DataFrame, expectations: Sequence[Expectation], now_ms: int | None
) -> tuple[dict[Expectation, CheckResult], DataFrame, int, int]:
    """Results on single rows; the frame without those left out; how many rows are left, and how many left out."""
    failing = failing_sql(spec, frame, expectations, now_ms)
    total, dropped, counts = count_failing(frame, failing)
    found = {}
    for one, count in counts.items():
        looked_at = total if one.on_failure is OnFailure.DROP else total - dropped
        found[one] = result_of(one, count, looked_at, sample_of(spec, frame, failing[one]) if count else [])
    kept = without_dropped(frame, failing) if dropped else frame
    return found, kept, total - dropped, dropped


def _of(
    expectations: Sequence[Expectation], kinds: frozenset[ExpectationKind] | set[ExpectationKind]
) -> list[Expectation]:
    return [one for one in expectations if one.kind in kinds]
