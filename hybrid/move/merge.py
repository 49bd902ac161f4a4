"""Combines the rows of a move bucket by bucket, as its merge type says. From Spark frame to Spark frame."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from hybrid.config.table_config import BucketConfig, MergeType, TableSpec
from hybrid.lake.defaults import with_added
from hybrid.lake.layout import quoted
from hybrid.lake.spark_upsert_order import winners_first
from hybrid.move.rollup import rolled_up
from hybrid.move.rounding import with_rounded_times
from hybrid.schema.types import DataType
from hybrid.table import columns
from hybrid.table.upsert_order import winning_order

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BUCKET = "_hy_bucket"  # an extra column: the start of a row's bucket


def with_bucket(rows: DataFrame, config: BucketConfig) -> DataFrame:
    """Add the start of each row's bucket as a column; null on a table without a time column."""
    from pyspark.sql import functions as F

    time = F.col(columns.TIME)
    return rows.withColumn(BUCKET, time - F.pmod(time, F.lit(config.bucket_ms)))


def merge(rows: DataFrame, spec: TableSpec, config: BucketConfig, tasks: int, added: Collection[str]) -> DataFrame:
    """Apply the merge type to rows, in `tasks` Spark tasks. `added` are columns that rows of their half may lack.

    Times are rounded first. Rows are merged only within their bucket. A delete marker is treated like any other row: it
    is kept when it is the latest of its key, because older versions may exist elsewhere.
    """
    rows = with_rounded_times(rows, spec, config)
    if config.merge_type is MergeType.CONCAT:
        return rows
    if spec.upsert is None:
        # Rows that queries show as equal are equal, and values are combined as queries show them. Versions of a key,
        # including delete markers, stay as stored.
        rows = with_added(rows, spec, added)
    if config.merge_type is MergeType.ROLLUP:
        return rolled_up(rows, spec, config)
    if config.merge_type is MergeType.DEDUP:
        # Of equal rows the last arrival stays, on a dedup table the first. On an upsert table an earlier one could lose
        # a tie that the last one wins.
        keys, deciding = spec.schema.column_names, tuple(columns.ARRIVAL)
    else:
        keys, deciding = spec.primary_key, winning_order(spec)
    if spec.by_flows:  # rows of different flows stay apart, because a refresh of a flow deletes its rows
        keys = (columns.CONNECTOR, *keys)
    same = [quoted(name) for name in (BUCKET, *keys)]
    rows = with_bucket(rows, config)
    # Spark normalizes floats before comparing them, so partitioning by them would cause a second shuffle.
    floats = {field.name for field in spec.schema.fields if field.data_type in (DataType.FLOAT, DataType.DOUBLE)}
    divided = rows.repartition(tasks, BUCKET, *(quoted(name) for name in keys if name not in floats))
    return _first_of_each(divided, same, winners_first(spec, deciding))


def _first_of_each(rows: DataFrame, same: list[Column], order: list[Column]) -> DataFrame:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    place = "_hy_place"
    window = Window.partitionBy(*same).orderBy(*order)
    return rows.withColumn(place, F.row_number().over(window)).where(F.col(place) == 1).drop(place)
