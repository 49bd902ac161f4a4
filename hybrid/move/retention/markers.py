"""Delete markers for winners that expire (R5): kept for keys of which an older row remains anywhere.

In a partial upsert no row is a winner, and remaining rows count by themselves. There, an expired delete marker is kept
while any row of its key remains: deleted rows must not become visible again.

A marker replaces an expired row, in its segment, at its time, with its upsert order. So it is visible where the row
was, and hides what the row hid. Of a key, each row gets a marker that is the greatest of the rows up to its time. So
under any time limit the greatest expired row below it is among them. A delete marker that expires is such a row.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config.table_config import TableSpec
from hybrid.lake.layout import quoted
from hybrid.lake.spark_upsert_order import beats, best, key_struct, order_struct, worst
from hybrid.lake.staged_frames import stage_frame
from hybrid.table import columns
from hybrid.table.upsert_order import winning_order

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from hybrid.lake.commit_context import CommitContext

_KEY, _ROW, _ORDER, _TIME, _LOW = "_hy_key", "_hy_row", "_hy_order", "_hy_at", "_hy_low"
_HIGHEST = "_hy_highest"


@dataclass(frozen=True)
class Markers:
    """Staged markers, counted by segment. `whole`: segments of nothing but markers, all of which have to be kept."""

    frame: DataFrame
    counts: Mapping[str, int]
    whole: Collection[str]


def deciding(spec: TableSpec) -> list[Column]:
    """The columns read of remaining rows: their key, what they are compared by, and whether they are markers."""
    order = winning_order(spec) if spec.picks_winners else ()
    names = (*spec.primary_key, *order, columns.OP)
    return [quoted(name) for name in dict.fromkeys(names)]


def stage_markers(bench: CommitContext, spec: TableSpec, going: DataFrame, staying: DataFrame, folder: Path) -> Markers:
    """Stage in `folder` the markers that rows of `going` leave; `staying` has the deciding columns of all others."""
    from pyspark.sql import functions as F

    chosen = _greatest_with_older if spec.picks_winners else _with_others
    staged = stage_frame(bench, chosen(spec, going, staying), folder, going.schema)
    counts = {row[0]: int(row[1]) for row in staged.groupBy(columns.SEGMENT).count().collect()}
    is_marker = quoted(columns.OP) == columns.OP_DELETE
    sizes = going.groupBy(columns.SEGMENT).agg(F.count("*"), F.count_if(is_marker)).collect()
    whole = {name for name, rows, markers in sizes if rows == markers == counts.get(name, 0)}
    return Markers(staged, counts, whole)


def _greatest_with_older(spec: TableSpec, going: DataFrame, staying: DataFrame) -> DataFrame:
    """The markers for keys of `going` of which an older row is in `staying`.

    Markers in `staying` count too: a revert may remove them, and what they hide becomes visible.
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
    """The markers in `going` whose key has a row in `staying`."""
    key = key_struct(spec).alias(_KEY)
    markers = going.where(quoted(columns.OP) == columns.OP_DELETE).select(key, _marker(spec, going))
    return markers.join(staying.select(key).distinct(), _KEY, "left_semi").select(f"{_ROW}.*")


def _marker(spec: TableSpec, going: DataFrame) -> Column:
    """The marker that replaces a row."""
    from pyspark.sql import functions as F

    return F.struct(*(_kept(spec, name, kind) for name, kind in going.dtypes)).alias(_ROW)


def _kept(spec: TableSpec, name: str, kind: str) -> Column:
    """A column of a marker. It keeps key, order and place; other values have expired."""
    from pyspark.sql import functions as F

    if name == columns.OP:
        return F.lit(columns.OP_DELETE).alias(name)
    compared = spec.upsert.comparison_columns if spec.upsert is not None else ()
    deciding = {*spec.primary_key, *compared, spec.time_column}
    keeps = name in deciding or name.startswith(columns.PREFIX)
    return quoted(name).alias(name) if keeps else F.lit(None).cast(kind).alias(name)
