"""Delete markers for removed winners (R5): removing a key's winner also hides its older versions.

When a key leaves a segment, an older version of it elsewhere, or a late one, would win and make the key visible again.
So a marker replaces the removed row: hidden itself, and older than every newer version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hybrid.config.table_config import Half, TableSpec
from hybrid.lake.layout import physical_columns, quoted
from hybrid.lake.spark_upsert_order import best_by, key_struct
from hybrid.replace.diff import order_of
from hybrid.table import columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KEY, _ROW = "_hy_key", "_hy_row"


def removed_winners(spec: TableSpec, before: DataFrame, after: DataFrame) -> DataFrame:
    """Stored rows of op `delete`: one for each key of `before` that `after` lacks, with the arrival of its latest row.

    A marker in `before` is carried over in the same way. Where rows are combined (`spec.folds`), only markers are
    carried over, except markers that `after` contains with the same arrival.
    """
    from pyspark.sql import functions as F

    if spec.folds:
        is_marker = quoted(columns.OP) == columns.OP_DELETE
        place = [*columns.ARRIVAL, *spec.primary_key]
        again = after.where(is_marker).select(*(quoted(name) for name in place))
        return before.where(is_marker).join(again, place, "left_anti")
    names = [name for name, _ in physical_columns(spec, Half.OFFLINE)]
    stored = F.struct(*(quoted(name) for name in names)).alias(_ROW)
    latest = (
        before.select(key_struct(spec).alias(_KEY), order_of(spec).alias("_hy_order"), stored)
        .groupBy(_KEY)
        .agg(best_by(spec, F.col(_ROW), F.col("_hy_order")).alias(_ROW))
    )
    removed = latest.join(after.select(key_struct(spec).alias(_KEY)), _KEY, "left_anti")
    return removed.select(f"{_ROW}.*").withColumn(columns.OP, F.lit(columns.OP_DELETE))
