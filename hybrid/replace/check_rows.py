"""Checks on rows in Spark: conditions on single rows, and repeated values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hybrid.config.expectations import OPTION, Expectation, ExpectationKind, OnFailure
from hybrid.config.table_config import TableSpec
from hybrid.errors import DataError, HybridError, SpecError, UsageError
from hybrid.jvm.spark_errors import spark_sentence
from hybrid.lake.collect import collect_rows
from hybrid.lake.exact_decimals import with_exact_decimals
from hybrid.lake.layout import quoted
from hybrid.lake.workers import worker_fault
from hybrid.replace.check_result import SAMPLES_MAX
from hybrid.replace.diff import shown_row
from hybrid.runtime.json_values import json_value
from hybrid.schema.schema import FieldKind
from hybrid.sql.expectation_sql import holds_sql
from hybrid.sql.row_values import default_sql
from hybrid.sql.spark_text import backquoted
from hybrid.sql.spark_text import quoted as literal
from hybrid.table import columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# A column that staged rows may have: the names of watched columns that had no value in the record.
NULLS = "_hy_nulls"
# What Spark puts before the words of `raise_error`, which are ours.
_OUR_OWN = "[USER_RAISED_EXCEPTION] "
ROWS = f"{columns.OP} <> '{columns.OP_DELETE}'"
_NUMBER = "_hy_place"
_TEXT_SHOWN_MAX = 200

Failing = Mapping[Expectation, str]


def failing_sql(
    spec: TableSpec, frame: DataFrame, expectations: Sequence[Expectation], now_ms: int | None
) -> dict[Expectation, str]:
    """For each expectation on single rows, the SQL condition of the rows that fail. A condition that is null fails.

    SpecError, or UsageError for an option, when Spark cannot analyse a condition; the message names its place. Rows
    that `drop` leaves out are not checked by the other expectations.
    """
    conditions = {expectation: _fails(spec, frame, expectation, now_ms) for expectation in expectations}
    dropped = dropped_sql(conditions)
    for expectation, condition in conditions.items():
        _refuse_senseless(frame, expectation, condition)
        if dropped and expectation.on_failure is not OnFailure.DROP:
            conditions[expectation] = f"({condition} AND NOT {dropped})"
    return conditions


def dropped_sql(failing: Failing) -> str | None:
    """The SQL condition of dropped rows; None when no expectation drops rows."""
    drops = [condition for expectation, condition in failing.items() if expectation.on_failure is OnFailure.DROP]
    return f"({' OR '.join(drops)})" if drops else None


def without_dropped(frame: DataFrame, failing: Failing) -> DataFrame:
    """The frame without the rows that `drop` leaves out."""
    condition = f"NOT ({ROWS} AND {dropped_sql(failing)})"
    return with_exact_decimals(frame, lambda exact: exact.where(condition))


def count_failing(frame: DataFrame, failing: Failing) -> tuple[int, int, dict[Expectation, int]]:
    """In one pass: the number of rows, the number left out, and the number that fail each expectation."""
    from pyspark.sql import functions as F

    dropped = dropped_sql(failing) or "FALSE"
    counts = [F.count_if(F.expr(condition)) for condition in (dropped, *failing.values())]
    counted = with_exact_decimals(frame, lambda exact: exact.where(ROWS).agg(F.count(F.lit(1)), *counts))
    row = counted.first()
    assert row is not None
    total, out, *each = row
    return total, out, dict(zip(failing, each, strict=True))


def repeated(frame: DataFrame, names: Sequence[str]) -> int:
    """The number of rows behind the first with the same values. Rows with a null among these values do not count."""
    from pyspark.sql import functions as F

    groups = _complete(frame.where(ROWS), names).groupBy(*map(quoted, names)).agg(F.count(F.lit(1)).alias(_NUMBER))
    total = groups.where(f"{_NUMBER} > 1").agg(F.sum(F.col(_NUMBER) - 1)).first()
    return int(total[0] or 0) if total is not None else 0


def numbered(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """The frame with each row's place, in order of arrival, among the rows with the same values.

    Rows that are not checked (delete markers, nulls among the values) have place 1.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.window import Window

    window = Window.partitionBy(*map(quoted, names)).orderBy(*_arrival(frame))
    complete = " AND ".join(f"{backquoted(name)} IS NOT NULL" for name in names)
    looked_at = frame.where(f"{ROWS} AND {complete}").withColumn(_NUMBER, F.row_number().over(window))
    return looked_at.unionByName(frame.where(f"NOT ({ROWS} AND {complete})").withColumn(_NUMBER, F.lit(1)))


def without_repeated(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """The frame with only the first of the rows with the same values."""
    return numbered(frame, names).where(f"{_NUMBER} = 1").drop(_NUMBER)


def repeated_sample(spec: TableSpec, frame: DataFrame, names: Sequence[str]) -> list[dict[str, Any]]:
    """A sample of the repeated rows, without the first of each."""
    return sample_of(spec, numbered(frame, names), f"{_NUMBER} > 1")


def sample_of(spec: TableSpec, frame: DataFrame, condition: str) -> list[dict[str, Any]]:
    """The first rows, in order of arrival, that meet a condition, as JSON values. Long texts are cut."""
    matching = with_exact_decimals(frame, lambda exact: exact.where(ROWS).where(condition))
    first = matching.orderBy(*_arrival(frame)).limit(SAMPLES_MAX)
    rows = collect_rows(first.select(*map(quoted, spec.schema.column_names)))
    return [{name: _cut(value) for name, value in json_value(shown_row(spec, row)).items()} for row in rows]


@contextmanager
def spark_errors(what: str, hint: str) -> Iterator[None]:
    """Raises DataError for what Spark cannot compute on a row: a cast, a division by zero, an overflow.

    `what` begins the message: what could not be done.
    """
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        fault = worker_fault(error)
        if fault is not None:
            raise fault from error
        sentence = spark_sentence(error).removeprefix(_OUR_OWN).rstrip(".")
        raise DataError(f"{what}: {sentence}. Nothing was changed.", hint=hint) from error


def _fails(spec: TableSpec, frame: DataFrame, one: Expectation, now_ms: int | None) -> str:
    holds = holds_sql(one, spec, now_ms)
    if one.kind is ExpectationKind.NOT_NULL:
        holds = f"({holds} AND NOT {_stands_for_null(spec, frame, one.columns[0])})"
    return f"(NOT coalesce({holds}, FALSE))"


def _stands_for_null(spec: TableSpec, frame: DataFrame, name: str) -> str:
    """The SQL condition that a value replaces a missing one.

    Rows without `NULLS` are recognized by their column's default. The default of metrics, 0, is too often a real
    value.
    """
    if NULLS in frame.columns:
        return f"coalesce(array_contains({NULLS}, {literal(name)}), FALSE)"
    field = spec.schema.find(name)
    assert field is not None
    default = default_sql(field, spec)
    if default is None or not field.single_value or field.kind is FieldKind.METRIC:
        return "FALSE"
    return f"({backquoted(name)} <=> {default})"


def _refuse_senseless(frame: DataFrame, one: Expectation, condition: str) -> None:
    from pyspark.errors import AnalysisException

    try:
        with_exact_decimals(frame, lambda exact: exact.where(condition))
    except AnalysisException as error:
        kind: type[HybridError] = UsageError if one.place.startswith(OPTION) else SpecError
        raise kind(f"{one.place}: '{one.name}' cannot be looked at: {spark_sentence(error)}") from error


def _complete(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    return frame.where(" AND ".join(f"{backquoted(name)} IS NOT NULL" for name in names))


def _arrival(frame: DataFrame) -> list[Column]:
    """The columns of arrival order. Staged rows have only their position in the files; stored rows have all of them."""
    return [quoted(name) for name in columns.ARRIVAL if name in frame.columns]


def _cut(value: object) -> object:
    is_long = isinstance(value, str) and len(value) > _TEXT_SHOWN_MAX
    return f"{str(value)[: _TEXT_SHOWN_MAX - 3]}..." if is_long else value
