"""Delete markers for removed winners (R5): a winner that is removed takes its older versions with it.

When a key leaves a segment and an older version of it stands elsewhere, that version would win and the key come back.
So the new segment keeps a marker in the removed row's place: hidden itself, older than every newer version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hybrid.replace.diff import key_struct, order_columns, quoted
from hybrid.spec.table_config import Half, TableSpec
from hybrid.table import columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KEY, _ORDER, _BEST = "_hy_key", "_hy_order", "_hy_best"


def removed_winners(spec: TableSpec, before: DataFrame, after: DataFrame, elsewhere: DataFrame) -> DataFrame:
    """Stored rows of op `delete`: one for each key of `before` that `after` lacks and that has an older row `elsewhere`.

    A marker that already stands in `before` is carried on in the same way.
    """
    from pyspark.sql import functions as F

    from hybrid.lake.layout import physical_columns

    names = [name for name, _ in physical_columns(spec, Half.OFFLINE)]
    stored = F.struct(*(quoted(name) for name in names))
    best = _keyed(spec, before, stored.alias("row")).groupBy(_KEY).agg(F.max_by("row", _ORDER).alias(_BEST), F.max(_ORDER))
    best = best.withColumnRenamed(f"max({_ORDER})", _ORDER).alias("best")
    kept = _keyed(spec, after).alias("kept")
    older = _keyed(spec, elsewhere.where(F.col(columns.OP) == columns.OP_ROW)).alias("older")
    removed = best.join(kept, F.col(f"best.{_KEY}") == F.col(f"kept.{_KEY}"), "left_anti")
    same_key = F.col(f"best.{_KEY}") == F.col(f"older.{_KEY}")
    hiding = removed.join(older, same_key & (F.col(f"older.{_ORDER}") < F.col(f"best.{_ORDER}")), "left_semi")
    return hiding.select(f"{_BEST}.*").withColumn(columns.OP, F.lit(columns.OP_DELETE))


def _keyed(spec: TableSpec, rows: DataFrame, *more: object) -> DataFrame:
    from pyspark.sql import functions as F

    return rows.select(key_struct(spec).alias(_KEY), F.struct(*order_columns(spec)).alias(_ORDER), *more)  # type: ignore[arg-type]
