"""Rollup: rows that are equal except for their metrics become one, with their metrics combined.

Nulls are ignored, as in SQL: a metric is null when all of its values are. A sum that its column cannot hold is an
error, never a wrong number. Sums of FLOAT and DOUBLE may differ in their last digits by the order of rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hybrid.config.table_config import Aggregation, BucketConfig, TableSpec, kept_for_average
from hybrid.errors import DataError, SpecError
from hybrid.lake.layout import quoted
from hybrid.schema.schema import FieldKind, FieldSpec
from hybrid.schema.types import DataType
from hybrid.table import columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from hybrid.lake.commit_context import CommitContext

_LAST = "_hy_last"  # the hidden columns of the row that arrived last
_TOO_MUCH, _NOT_COUNTED = "is more than its column holds", "has values that nobody counted"
_RAISED = re.compile(rf"the (?:sum|average) of .*? (?:{_TOO_MUCH}|{_NOT_COUNTED})", re.DOTALL)
_HINTS = {
    _TOO_MUCH: "Give the column a longer type, such as LONG or DOUBLE, or another aggregationType.",
    _NOT_COUNTED: "Fill the metrics with its sum and its count by transforms, and replay or load these rows again.",
}
_WHOLE = {DataType.INT: 31, DataType.LONG: 63}
_FLOAT_MAX = 3.4028234663852886e38


def rolled_up(rows: DataFrame, spec: TableSpec, config: BucketConfig) -> DataFrame:
    """One row per group, with the hidden columns of its last arrival, which keep its origin known.

    Rows of different flows, and of different refreshes, are not combined: a refresh deletes the rows of one.
    """
    from pyspark.sql import functions as F

    fields = {field.name: field for field in spec.schema.fields}
    keys = [name for name, field in fields.items() if field.kind is not FieldKind.METRIC]
    metrics = [(fields[name], aggregation) for name, aggregation in config.aggregations]
    last = F.max(F.struct(*(quoted(name) for name in (*columns.ARRIVAL, columns.OP, columns.TIME)))).alias(_LAST)
    same = [*keys, *([columns.CONNECTOR, columns.EPOCH] if spec.by_flows else [])]
    combined = (_combined(field, aggregation).alias(field.name) for field, aggregation in metrics)
    lost = (_not_counted(field).alias(_lost(field)) for field, how in metrics if how is Aggregation.AVG)
    grouped = rows.groupBy(*(quoted(name) for name in same)).agg(last, *combined, *lost)
    hidden = (F.col(_LAST)[name].alias(name) for name in (*columns.ARRIVAL, columns.OP, columns.TIME))
    averaged = (
        _average(field).alias(field.name) if how is Aggregation.AVG else quoted(field.name) for field, how in metrics
    )
    return grouped.select(*(quoted(name) for name in keys), *averaged, *hidden)


def refuse_inexact_averages(bench: CommitContext, spec: TableSpec, config: BucketConfig) -> None:
    """SpecError for averages of BIG_DECIMAL on a Spark Connect server.

    Its session keeps all digits of decimals behind the point, which leaves a quotient 11 before it, and rounds twice.
    """
    kinds = {field.name: field.data_type for field in spec.schema.fields}
    names = [name for name, how in config.aggregations if how is Aggregation.AVG]
    decimals = [name for name in names if kinds.get(name) is DataType.BIG_DECIMAL]
    if decimals and not bench.has_jvm:
        raise SpecError(
            f"Rows of '{spec.name}' are rolled up with the average of '{decimals[0]}', a BIG_DECIMAL, which a Spark "
            "Connect server would compute otherwise. Nothing was started.",
            hint="While no server of this home runs: HYBRID_SPARK_WORKER_FILES=shared "
            "HYBRID_SPARK_MASTER='local[2]' hybrid ...",
        )


@contextmanager
def sums_that_fit(spec: TableSpec) -> Iterator[None]:
    """Turn Spark's errors about sums that do not fit, or values without a count for an average, into DataError."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        match = _RAISED.search(str(error))
        if match is None:
            raise
        raise DataError(
            f"Rows of '{spec.name}' cannot be rolled up: {match[0]}. Nothing was changed.",
            hint=next(hint for words, hint in _HINTS.items() if match[0].endswith(words)),
        ) from error


def _combined(field: FieldSpec, aggregation: Aggregation) -> Column:
    from pyspark.sql import functions as F

    value = quoted(field.name)
    match aggregation:
        case Aggregation.MIN:
            return F.min(value)
        case Aggregation.MAX | Aggregation.AVG:  # an average is computed later; without counts it is this
            return F.max(value)
        case Aggregation.COUNT:
            return F.count(value).cast(field.spark_type)
        case Aggregation.SUM:
            return _sum(field, value)


def _sum(field: FieldSpec, value: Column) -> Column:
    from pyspark.sql import functions as F

    kind = field.data_type
    if kind is DataType.DOUBLE:
        return F.sum(value)
    if kind is DataType.FLOAT:
        total = F.sum(value.cast("double"))
        fits = (F.abs(total) <= _FLOAT_MAX) | F.isnan(total) | (F.abs(total) == float("inf"))
    elif kind is DataType.BIG_DECIMAL:
        total = F.try_sum(value)
        fits = total.isNotNull() | (F.count(value) == 0)
    else:
        total, bits = F.sum(value.cast("decimal(19,0)")), _WHOLE[kind]
        fits = total.between(F.lit(-(2**bits)).cast("decimal(29,0)"), F.lit(2**bits - 1).cast("decimal(29,0)"))
    shown = F.coalesce(F.concat(F.lit(", "), total.cast("string"), F.lit(",")), F.lit(""))
    message = F.concat(F.lit(f"the sum of '{field.name}' ({kind})"), shown, F.lit(f" {_TOO_MUCH}"))
    raised = F.raise_error(message).cast(field.spark_type)
    return F.when(F.coalesce(fits, F.lit(True)), total.cast(field.spark_type)).otherwise(raised)


def _lost(field: FieldSpec) -> str:
    return f"_hy_lost_{field.name}"


def _not_counted(field: FieldSpec) -> Column:
    """Whether a group has a value that its own row does not count, so that no average would include it."""
    from pyspark.sql import functions as F

    value, counted = quoted(field.name), F.coalesce(quoted(kept_for_average(field.name)[1]), F.lit(0)) > 0
    return F.count_if(value.isNotNull() & (value != F.lit(field.default_null)) & ~counted) > 0


def _average(field: FieldSpec) -> Column:
    """The average, from the sum and count columns beside it."""
    from pyspark.sql import functions as F

    total, count = (quoted(name) for name in kept_for_average(field.name))
    kind = field.spark_type if field.data_type is DataType.BIG_DECIMAL else "double"
    error = F.raise_error(F.lit(f"the average of '{field.name}' {_NOT_COUNTED}")).cast(kind)
    average = (
        F.when(quoted(_lost(field)), error).when(count > 0, total.cast(kind) / count).otherwise(quoted(field.name))
    )
    return average.cast(field.spark_type)
