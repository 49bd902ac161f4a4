"""Rounds the times of rows on their way into OFFLINE: the stored time column and the hidden time."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

from hybrid.config.table_config import BucketConfig, TableSpec
from hybrid.lake.layout import quoted
from hybrid.schema.schema import FieldSpec
from hybrid.schema.timeformat import MIN_MS, TimeFormat, TimeKind
from hybrid.schema.types import DataType
from hybrid.table import columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MS_NS = 1_000_000


def with_rounded_times(rows: DataFrame, spec: TableSpec, config: BucketConfig) -> DataFrame:
    """The rows with times rounded down; unchanged when the task does not round."""
    from pyspark.sql import functions as F

    field = spec.time_field
    if config.round_ms is None or field is None or field.time_format is None:
        return rows
    time = F.col(columns.TIME)
    rounded = F.greatest(time - F.pmod(time, F.lit(config.round_ms)), F.lit(MIN_MS))  # as `rounded_down`
    changed = {columns.TIME: rounded, field.name: _stored(rounded, field, field.time_format)}
    return rows.select(*(changed.get(name, quoted(name)).alias(name) for name in rows.columns))


def _stored(time_ms: Column, field: FieldSpec, form: TimeFormat) -> Column:
    """The result of `form.from_millis`, as a Spark column."""
    from pyspark.sql import functions as F

    if form.data_type is DataType.TIMESTAMP:
        return F.timestamp_millis(time_ms)
    if form.kind is TimeKind.PATTERN:
        return F.udf(form.from_millis, field.spark_type)(time_ms)
    if form.kind is TimeKind.TIMESTAMP:
        return time_ms.cast(field.spark_type)
    common = gcd(_MS_NS, form.step_ns)
    steps, length = time_ms * F.lit(_MS_NS // common), F.lit(form.step_ns // common)
    return F.call_function("div", steps - F.pmod(steps, length), length).cast(field.spark_type)
