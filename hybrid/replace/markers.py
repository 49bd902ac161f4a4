"""Delete markers for removed winners (R5): a winner that is removed takes its older versions with it.

When a key leaves a segment and an older version of it stands elsewhere, that version would win and the key come back.
So the new segment keeps a marker in the removed row's place: hidden itself, older than every newer version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hybrid.lake.layout import physical_columns, quoted
from hybrid.replace.diff import key_struct, order_columns
from hybrid.spec.table_config import Half, TableSpec
from hybrid.table import columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_KEY, _ORDER, _BEST, _ROW = "_hy_key", "_hy_order", "_hy_best", "_hy_row"


def removed_winners(spec: TableSpec, before: DataFrame, after: DataFrame, elsewhere: DataFrame) -> DataFrame:
    """Stored rows of op `delete`: one for each key of `before` that `after` lacks and `elsewhere` has an older row of.

    A marker that already stands in `before` is carried on in the same way.
    """
    from pyspark.sql import functions as F

    names = [name for name, _ in physical_columns(spec, Half.OFFLINE)]
    stored = F.struct(*(quoted(name) for name in names)).alias(_ROW)
    best = (
        _keyed(spec, before, stored).groupBy(_KEY).agg(F.max_by(_ROW, _ORDER).alias(_ROW), F.max(_ORDER).alias(_BEST))
    )
    removed = best.join(_keyed(spec, after), _KEY, "left_anti").alias("removed")
    older = _keyed(spec, elsewhere.where(F.col(columns.OP) == columns.OP_ROW)).alias("older")
    same_key = F.col(f"removed.{_KEY}") == F.col(f"older.{_KEY}")
    hiding = removed.join(older, same_key & (F.col(_ORDER) < F.col(_BEST)), "left_semi")
    return hiding.select(f"{_ROW}.*").withColumn(columns.OP, F.lit(columns.OP_DELETE))


def _keyed(spec: TableSpec, rows: DataFrame, *more: Column) -> DataFrame:
    from pyspark.sql import functions as F

    return rows.select(key_struct(spec).alias(_KEY), F.struct(*order_columns(spec)).alias(_ORDER), *more)
