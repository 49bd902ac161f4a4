"""Rows of a correction that a table which combines rows (`spec.folds`) ignores.

Rows without an inherited arrival arrive last. A row whose comparison value is below its key's greatest is ignored.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from hybrid.config.table_config import TableSpec
from hybrid.lake.layout import quoted
from hybrid.lake.spark_upsert_order import key_struct
from hybrid.progress import counted
from hybrid.table import columns
from hybrid.table.upsert_order import REPLACEMENT_CONNECTOR

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_KEY = "_hy_key"


def compared(spec: TableSpec) -> list[Column]:
    """The columns that are read of rows that arrived before: their key and their comparison columns."""
    names = spec.upsert.comparison_columns if spec.upsert is not None else ()
    return [quoted(name) for name in dict.fromkeys([*spec.primary_key, *names])]


def ignored_warnings(spec: TableSpec, fresh: DataFrame, others: DataFrame, topic: str) -> tuple[str, ...]:
    """A warning with the number of rows in `fresh` that are ignored because of the remaining rows `others`.

    Empty on other tables. Rows that arrive now have this topic; the others inherited the arrival of rows that they
    correct.
    """
    if not spec.folds or spec.upsert is None:
        return ()
    arrives = (quoted(columns.CONNECTOR) == REPLACEMENT_CONNECTOR) & (quoted(columns.TOPIC) == topic)
    others = others.unionByName(fresh.where(~arrives).select(*compared(spec)))
    count = _below(spec, spec.upsert.comparison_columns, fresh.where(arrives), others)
    if not count:
        return ()
    names = " and ".join(f"'{name}'" for name in spec.upsert.comparison_columns)
    return (
        f"{counted(count, 'row')} of the input will be ignored: rows of a correction arrive now, and their keys "
        f"have reached a higher {names}. To correct rows in their place: hybrid backfill plan ... --update or "
        "--delete.",
    )


def _below(spec: TableSpec, names: tuple[str, ...], fresh: DataFrame, others: DataFrame) -> int:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    tops = [f"_hy_top_{place}" for place in range(len(names))]
    reached = others.groupBy(key_struct(spec).alias(_KEY)).agg(
        *(F.max(quoted(name)).alias(top) for name, top in zip(names, tops, strict=True))
    )
    so_far = Window.partitionBy(_KEY).orderBy(columns.PARTITION, columns.OFFSET)
    joined = fresh.withColumn(_KEY, key_struct(spec)).join(reached, _KEY, "left")

    def is_below(name: str, top: str) -> Column:
        return quoted(name) < F.greatest(F.max(quoted(name)).over(so_far), F.col(top))

    below = reduce(or_, (is_below(name, top) for name, top in zip(names, tops, strict=True)))
    return joined.withColumn("_hy_below", below).where(F.col("_hy_below")).count()
