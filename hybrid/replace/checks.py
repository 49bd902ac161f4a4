"""Checks staged rows against expectations before any of them becomes visible.

One pass counts the failures of all expectations on single rows; each `unique` takes one more pass. Samples are read
only where rows fail. The other expectations do not see rows that a `drop` leaves out. With `drop`, `unique` keeps the
row that arrived first. Delete markers are not checked.
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
    """Checked rows: `frame` holds the remaining rows, `dropped` counts those left out.

    `results` are in the order of the expectations. Rows of `frame` keep all columns, hidden ones too, and delete
    markers.
    """

    frame: DataFrame
    results: tuple[CheckResult, ...]
    dropped: int = 0

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        """The failures that stop the job or backfill."""
        return tuple(result for result in self.results if result.state is CheckState.FAILED)


def check(
    spec: TableSpec,
    frame: DataFrame,
    expectations: Sequence[Expectation],
    rows_before: int | None,
    *,
    now_ms: int | None = None,
) -> Checked:
    """Checks the rows of `frame`, which has the user columns by name and hidden ones (`table.columns`), OP among them.

    `rows_before` is the number of rows that they replace. None means unknown: then `row_count_change` does not fail.
    `now_ms` is the value of now() in conditions; None refuses now(). SpecError for an expectation that does not fit
    the table; DataError when Spark fails on a row. Failing rows are no error here.
    """
    what = f"The expectations of table '{spec.name}' cannot be looked at"
    with spark_errors(what, hint="TRY_CAST gives null where CAST fails."):
        results, remaining, rows, dropped = _of_rows(spec, frame, _of(expectations, ROW_KINDS), now_ms)
        for expectation in _of(expectations, {ExpectationKind.UNIQUE}):
            count = repeated(remaining, expectation.columns)
            sample = repeated_sample(spec, remaining, expectation.columns) if count else []
            results[expectation] = result_of(expectation, count, rows, sample)
            if count and expectation.on_failure is OnFailure.DROP:
                remaining, rows, dropped = (
                    without_repeated(remaining, expectation.columns),
                    rows - count,
                    dropped + count,
                )
    for expectation in _of(expectations, {ExpectationKind.ROW_COUNT_CHANGE}):
        results[expectation] = change_result(expectation, rows_before, rows)
    return Checked(remaining, tuple(results[expectation] for expectation in expectations), dropped)


def _of_rows(
    spec: TableSpec, frame: DataFrame, expectations: Sequence[Expectation], now_ms: int | None
) -> tuple[dict[Expectation, CheckResult], DataFrame, int, int]:
    """Results on single rows, the frame of remaining rows, their number, and the number of rows left out."""
    failing = failing_sql(spec, frame, expectations, now_ms)
    total, dropped, counts = count_failing(frame, failing)
    results = {}
    for expectation, count in counts.items():
        looked_at = total if expectation.on_failure is OnFailure.DROP else total - dropped
        results[expectation] = result_of(
            expectation, count, looked_at, sample_of(spec, frame, failing[expectation]) if count else []
        )
    remaining = without_dropped(frame, failing) if dropped else frame
    return results, remaining, total - dropped, dropped


def _of(
    expectations: Sequence[Expectation], kinds: frozenset[ExpectationKind] | set[ExpectationKind]
) -> list[Expectation]:
    return [expectation for expectation in expectations if expectation.kind in kinds]
