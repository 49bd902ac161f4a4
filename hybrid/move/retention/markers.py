"""Delete markers for winners that expire (R5): a marker stays for each key of which an older row stays anywhere.

The marker stands in the place of the key's latest row that goes: in its segment, at its time, with what makes it win.
So it is seen where the row was, and hides what the row hid. One that expires while an older row stays is such a row.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.lake.layout import quoted
from hybrid.spec.table_config import TableSpec
from hybrid.table import columns
from hybrid.table.liveness import winning_order

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_KEY, _ROW, _TOP, _LOW = "_hy_key", "_hy_row", "_hy_top", "_hy_low"


@dataclass(frozen=True)
class Markers:
    """Staged markers: how many by segment. `whole`: segments of nothing but markers, all of which have to stay."""

    frame: DataFrame
    counts: Mapping[str, int]
    whole: Collection[str]


def deciding(spec: TableSpec) -> list[Column]:
    """What is read of rows that stay: their key, what they are compared by, and whether they are markers."""
    names = (*spec.primary_key, *winning_order(spec), columns.OP)
    return [quoted(name) for name in dict.fromkeys(names)]


def stage_markers(spark: SparkSession, spec: TableSpec, going: DataFrame, staying: DataFrame, folder: Path) -> Markers:
    """The markers that rows `going` leave behind, staged in `folder`; of all others `staying` has what is deciding."""
    from pyspark.sql import functions as F

    _latest_with_older(spec, going, staying).write.parquet(str(folder))
    staged = spark.read.schema(going.schema).parquet(str(folder))
    counts = {row[0]: int(row[1]) for row in staged.groupBy(columns.SEGMENT).count().collect()}
    is_marker = quoted(columns.OP) == columns.OP_DELETE
    sizes = going.groupBy(columns.SEGMENT).agg(F.count("*"), F.count_if(is_marker)).collect()
    whole = {name for name, rows, markers in sizes if rows == markers == counts.get(name, 0)}
    return Markers(staged, counts, whole)


def _latest_with_older(spec: TableSpec, going: DataFrame, staying: DataFrame) -> DataFrame:
    """A marker for each key of `going` of which an older row, not a marker, is in `staying`."""
    from pyspark.sql import functions as F

    order = F.struct(*(quoted(name) for name in dict.fromkeys(winning_order(spec))))
    key = F.struct(*(quoted(name) for name in spec.primary_key)).alias(_KEY)
    row = F.struct(*(_kept(spec, name, kind) for name, kind in going.dtypes))
    latest = going.groupBy(key).agg(F.max_by(row, order).alias(_ROW), F.max(order).alias(_TOP))
    rows = staying.where(quoted(columns.OP) == columns.OP_ROW)
    oldest = rows.groupBy(key).agg(F.min(order).alias(_LOW))
    return latest.join(oldest, _KEY).where(F.col(_LOW) < F.col(_TOP)).select(f"{_ROW}.*")


def _kept(spec: TableSpec, name: str, kind: str) -> Column:
    """A column of a marker: what it is found, compared and placed by. Other values have expired."""
    from pyspark.sql import functions as F

    if name == columns.OP:
        return F.lit(columns.OP_DELETE).alias(name)
    deciding = {*spec.primary_key, *winning_order(spec), spec.time_column}
    keeps = name in deciding or name.startswith(columns.PREFIX)
    return quoted(name).alias(name) if keeps else F.lit(None).cast(kind).alias(name)
