"""Merges the rows of a move, bucket by bucket, and splits them into segments: Spark frames in, Spark frames out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hybrid.lake.layout import quoted
from hybrid.spec.table_config import MergeType, MoveConfig, TableSpec
from hybrid.table import columns
from hybrid.table.liveness import winning_order

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Columns of staged rows, beside the stored ones: the bucket's start, the split inside it, and the first and last time
# of the rows that were merged into this one (they name the segment).
BUCKET, SPLIT, LOW, HIGH = "_hy_bucket", "_hy_split", "_hy_low", "_hy_high"


def with_bucket(rows: DataFrame, config: MoveConfig) -> DataFrame:
    """Adds the start of each row's bucket; null on a table without a time column."""
    from pyspark.sql import functions as F

    time = F.col(columns.TIME)
    return rows.withColumn(BUCKET, time - F.pmod(time, F.lit(config.bucket_ms)))


def merge(rows: DataFrame, spec: TableSpec, config: MoveConfig) -> DataFrame:
    """The rows that are kept, with `LOW` and `HIGH`.

    Rows are merged inside their bucket only. A delete marker is a row like any other: when it is the latest of its key
    it is kept, because older versions may stand elsewhere.
    """
    from pyspark.sql import functions as F

    time = F.col(columns.TIME)
    if config.merge_type is MergeType.CONCAT:
        return rows.withColumn(LOW, time).withColumn(HIGH, time)
    if config.merge_type is MergeType.DEDUP:
        # Of equal rows the last that arrived stays: on an upsert table an earlier one may lose a tie that it wins.
        keys, deciding = spec.schema.column_names, tuple(columns.ARRIVAL)
    else:
        keys, deciding = spec.primary_key, winning_order(spec)
    return _first_of_each(rows, [BUCKET, *keys], [quoted(name).desc_nulls_last() for name in deciding])


def split(rows: DataFrame, config: MoveConfig, bucket_rows_max: int) -> DataFrame:
    """Numbers the segments of each bucket from 0, in time order, `max_records_per_segment` rows in each."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    if bucket_rows_max <= config.max_records_per_segment:
        return rows.withColumn(SPLIT, F.lit(0))
    window = Window.partitionBy(BUCKET).orderBy(columns.TIME, *columns.ARRIVAL)
    position = F.row_number().over(window) - 1
    return rows.withColumn(SPLIT, F.floor(position / config.max_records_per_segment).cast("int"))


def _first_of_each(rows: DataFrame, keys: list[str], order: list[Column]) -> DataFrame:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    same = Window.partitionBy(*(quoted(name) for name in keys))
    place = "_hy_place"
    return (
        rows.withColumn(place, F.row_number().over(same.orderBy(*order)))
        .withColumn(LOW, F.min(columns.TIME).over(same))
        .withColumn(HIGH, F.max(columns.TIME).over(same))
        .where(F.col(place) == 1)
        .drop(place)
    )
