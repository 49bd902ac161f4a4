"""Replacements on dedup tables, where the first row of a key is seen: a corrected row takes the place of the one that
it corrects.

What a replacement puts in arrives after all that is there (ADR 3), so each of its rows would lose against any row of
its key elsewhere, the duplicates of the very row that it corrects too. So the first row of a key takes over the arrival
of the first row of that key among those that are replaced: it is seen if and only if that one was. Other rows arrive
at the swap, and are seen where no other row of their key is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hybrid.lake.layout import TableLayout, physical_columns, quoted
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.lake.winning import beats, best, best_by, order_struct
from hybrid.lake.workbench import Workbench
from hybrid.progress import counted
from hybrid.replace.diff import key_struct
from hybrid.replace.swap import newest_rows, unmoved_rows
from hybrid.spec.table_config import Half, TableSpec
from hybrid.table import columns
from hybrid.table.liveness import first_wins

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_DAY_MS = 86_400_000
_KEY, _OF, _FIRST, _PLACE, _ORDER = "_hy_key", "_hy_of_key", "_hy_first", "_hy_place", "_hy_order"


def in_first_places(spec: TableSpec, before: DataFrame, after: DataFrame) -> DataFrame:
    """Stored rows `after` that come in the place of `before`, with their arrivals; on other tables as they are.

    Of several rows of a key one of the bucket of the row that is replaced takes the place, of its time if there is one;
    else the first.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    if not first_wins(spec):
        return after
    taken = F.struct(*(quoted(name) for name in (*columns.ARRIVAL, columns.TIME)))
    keyed = before.select(key_struct(spec).alias(_OF), order_struct(spec).alias(_ORDER), taken.alias(_FIRST))
    first = keyed.groupBy(_OF).agg(best_by(spec, F.col(_FIRST), F.col(_ORDER)).alias(_FIRST))
    rows = after.withColumn(_KEY, key_struct(spec))
    joined = rows.join(first, rows[_KEY].eqNullSafe(first[_OF]), "left")
    bucket_ms = F.lit(spec.move.bucket_ms if spec.move is not None else _DAY_MS)
    time, of_first = quoted(columns.TIME), F.col(f"{_FIRST}.{columns.TIME}")
    in_bucket = F.floor(time / bucket_ms).eqNullSafe(F.floor(of_first / bucket_ms))
    near = (in_bucket.desc(), time.eqNullSafe(of_first).desc())
    window = Window.partitionBy(_KEY).orderBy(*near, *(quoted(name) for name in columns.ARRIVAL))
    placed = joined.withColumn(_PLACE, F.row_number().over(window))
    takes = (F.col(_PLACE) == 1) & F.col(_FIRST).isNotNull()
    arrived = {name: F.when(takes, F.col(f"{_FIRST}.{name}")).otherwise(quoted(name)) for name in columns.ARRIVAL}
    wanted = [quoted(name) for name, _ in physical_columns(spec, Half.OFFLINE)]
    return placed.withColumns(arrived).select(*wanted)


def hidden_by_earlier(
    bench: Workbench,
    spec: TableSpec,
    layout: TableLayout,
    base: HalfSnapshot,
    replaced: tuple[str, ...],
    after: DataFrame,
) -> list[str]:
    """On a dedup table a warning of the keys whose row in `after` is not seen: another one arrived before it."""
    from pyspark.sql import functions as F

    if not first_wins(spec):
        return []
    key, order = key_struct(spec).alias(_KEY), order_struct(spec).alias(_ORDER)
    others = newest_rows(bench, base).where(~quoted(columns.SEGMENT).isin(list(replaced))).select(key, order)
    if Half.REALTIME in spec.halves:
        realtime = open_half(layout.half(Half.REALTIME))
        others = others.unionByName(unmoved_rows(bench, spec, realtime, base).select(key, order))
    rows = after.where(quoted(columns.OP) == columns.OP_ROW).select(key, order)
    mine = rows.groupBy(_KEY).agg(best(spec, F.col(_ORDER)).alias(_ORDER))
    first = others.groupBy(_KEY).agg(best(spec, F.col(_ORDER)).alias(_FIRST))
    count = mine.join(first, _KEY).where(beats(spec, F.col(_FIRST), F.col(_ORDER))).count()
    if not count:
        return []
    return [
        f"{counted(count, 'key')} of the input will not show what the input says: another row of the key arrived "
        "first, and that one is seen (dedupConfig)."
    ]
