"""Delete markers for winners that expire (R5): they stay for keys of which an older row stays anywhere.

Where rows are folded no row is a winner, and rows that stay count by themselves. A delete marker that expires stays
there while any row of its key does: what it took away must not come back.

A marker stands in the place of a row that goes: in its segment, at its time, with what makes it win. So it is seen
where the row was, and hides what the row hid. Of a key, each row gets one that is the greatest of those up to its time:
under any limit in time the greatest that goes below it is among them. A marker that expires is such a row.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config.table_config import TableSpec
from hybrid.lake.layout import quoted
from hybrid.lake.spark_upsert_order import beats, best, key_struct, order_struct, worst
from hybrid.table import columns
from hybrid.table.upsert_order import winning_order

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_KEY, _ROW, _ORDER, _TIME, _LOW = "_hy_key", "_hy_row", "_hy_order", "_hy_at", "_hy_low"
_HIGHEST = "_hy_highest"


@dataclass(frozen=True)
class Markers:
    """Staged markers: how many by segment. `whole`: segments of nothing but markers, all of which have to stay."""

    frame: DataFrame
    counts: Mapping[str, int]
    whole: Collection[str]


def deciding(spec: TableSpec) -> list[Column]:
    """What is read of rows that stay: their key, what they are compared by, and whether they are markers."""
    order = winning_order(spec) if spec.picks_winners else ()
    names = (*spec.primary_key, *order, columns.OP)
    return [quoted(name) for name in dict.fromkeys(names)]


def stage_markers(spark: SparkSession, spec: TableSpec, going: DataFrame, staying: DataFrame, folder: Path) -> Markers:
    """The markers that rows `going` leave behind, staged in `folder`; of all others `staying` has what is deciding."""
    from pyspark.sql import functions as F

    chosen = _greatest_with_older if spec.picks_winners else _with_others
    chosen(spec, going, staying).write.parquet(str(folder))
    staged = spark.read.schema(going.schema).parquet(str(folder))
    counts = {row[0]: int(row[1]) for row in staged.groupBy(columns.SEGMENT).count().collect()}
    is_marker = quoted(columns.OP) == columns.OP_DELETE
    sizes = going.groupBy(columns.SEGMENT).agg(F.count("*"), F.count_if(is_marker)).collect()
    whole = {name for name, rows, markers in sizes if rows == markers == counts.get(name, 0)}
    return Markers(staged, counts, whole)


def _greatest_with_older(spec: TableSpec, going: DataFrame, staying: DataFrame) -> DataFrame:
    """The markers for keys of `going` of which an older row is in `staying`.

    A marker there counts, too: a revert may take it away, and what it hides comes to light.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    order = order_struct(spec)
    key, row = key_struct(spec).alias(_KEY), _marker(spec, going)
    up_to_its_time = Window.partitionBy(_KEY).orderBy(_TIME).rangeBetween(Window.unboundedPreceding, Window.currentRow)
    rows = going.select(key, row, order.alias(_ORDER), quoted(columns.TIME).alias(_TIME))
    highest = best(spec, F.col(_ORDER)).over(up_to_its_time)
    greatest = rows.withColumn(_HIGHEST, highest).where(F.col(_ORDER) == F.col(_HIGHEST))
    oldest = staying.groupBy(key).agg(worst(spec, order).alias(_LOW))
    return greatest.join(oldest, _KEY).where(beats(spec, F.col(_ORDER), F.col(_LOW))).select(f"{_ROW}.*")


def _with_others(spec: TableSpec, going: DataFrame, staying: DataFrame) -> DataFrame:
    """The markers of `going` of whose keys there is a row in `staying`."""
    key = key_struct(spec).alias(_KEY)
    markers = going.where(quoted(columns.OP) == columns.OP_DELETE).select(key, _marker(spec, going))
    return markers.join(staying.select(key).distinct(), _KEY, "left_semi").select(f"{_ROW}.*")


def _marker(spec: TableSpec, going: DataFrame) -> Column:
    """What a row leaves in its place."""
    from pyspark.sql import functions as F

    return F.struct(*(_kept(spec, name, kind) for name, kind in going.dtypes)).alias(_ROW)


def _kept(spec: TableSpec, name: str, kind: str) -> Column:
    """A column of a marker: what it is found, compared and placed by. Other values have expired."""
    from pyspark.sql import functions as F

    if name == columns.OP:
        return F.lit(columns.OP_DELETE).alias(name)
    compared = spec.upsert.comparison_columns if spec.upsert is not None else ()
    deciding = {*spec.primary_key, *compared, spec.time_column}
    keeps = name in deciding or name.startswith(columns.PREFIX)
    return quoted(name).alias(name) if keeps else F.lit(None).cast(kind).alias(name)
