"""Replacements on tables where arrival decides what is visible: a corrected row inherits the arrival of the old row.

Rows of a replacement arrive after all stored rows (ADR 3). A dedup table shows the first row of a key, so a
replacement's row would lose against any other row of its key. This includes duplicates of the corrected row. Therefore
the first row of a key inherits the arrival of the first replaced row of that key. It is visible if and only if the old
row was. Other rows arrive at the swap and are visible where their key has no other row.

Where rows are combined (`spec.folds`), a job that corrects one row writes all other rows of its segments again. If
these arrived at the swap, keys with greater comparison values elsewhere would lose them from sums and lists. Therefore
a row inherits the arrival of a replaced row of its key with the same comparison value. It is one equal in every column
if there is one, else the first remaining one, in order. Delete markers of replaced segments keep their arrival
(`markers`), and only an equal marker inherits it. Other rows arrive at the swap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half, TableSpec
from hybrid.lake.layout import physical_columns, quoted
from hybrid.lake.log import HalfSnapshot
from hybrid.lake.spark_upsert_order import beats, best, best_by, key_struct, order_struct
from hybrid.lake.table_context import TableContext
from hybrid.progress import counted
from hybrid.replace.stale_rows import compared
from hybrid.replace.swap import rows_that_stay
from hybrid.table import columns
from hybrid.table.upsert_order import first_wins

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_DAY_MS = 86_400_000
_KEY, _OF, _FIRST, _PLACE, _ORDER = "_hy_key", "_hy_of_key", "_hy_first", "_hy_place", "_hy_order"
_OLD, _TWIN, _RANK = "_hy_old", "_hy_twin", "_hy_rank"


def in_taken_places(spec: TableSpec, before: DataFrame, after: DataFrame) -> DataFrame:
    """The stored rows `after`, which replace `before`, with inherited arrivals. Other tables' rows stay unchanged."""
    if first_wins(spec):
        return _in_first_places(spec, before, after)
    return _in_places_of_versions(spec, before, after) if spec.folds else after


def _in_first_places(spec: TableSpec, before: DataFrame, after: DataFrame) -> DataFrame:
    """Of several new rows of a key, one inherits the arrival of the replaced row.

    Rows in the replaced row's bucket are preferred, and among them rows with its time; then the earliest arrival.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

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
    stored_columns = [quoted(name) for name, _ in physical_columns(spec, Half.OFFLINE)]
    return placed.withColumns(arrived).select(*stored_columns)


def _in_places_of_versions(spec: TableSpec, before: DataFrame, after: DataFrame) -> DataFrame:
    """Equal rows are paired first, because the file may hold the versions of a key in another order."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    stored_columns = [quoted(name) for name, _ in physical_columns(spec, Half.OFFLINE)]
    arrival = [quoted(name) for name in columns.ARRIVAL]
    same, version = [quoted(name) for name in (*spec.schema.column_names, columns.OP)], compared(spec)
    old, new = (
        side.select(*stored_columns, F.lit(is_old).alias(_OLD)) for side, is_old in ((before, True), (after, False))
    )
    both = old.unionByName(new)

    def count_of(side: bool) -> Column:
        return F.count(F.when(quoted(_OLD) == side, 1)).over(Window.partitionBy(*same))

    # The number of the pair of equal rows; null when the other side has no equal row left.
    number = F.row_number().over(Window.partitionBy(*same, _OLD).orderBy(*arrival))
    paired = both.withColumn(_TWIN, F.when(number <= F.least(count_of(True), count_of(False)), number))
    alone = quoted(_TWIN).isNull()
    of_version = Window.partitionBy(*version, alone, _OLD).orderBy(*arrival)
    stays = quoted(_OLD) & alone & (quoted(columns.OP) == columns.OP_DELETE)
    ranked = paired.where(~stays).withColumn(_RANK, F.row_number().over(of_version))
    place = F.max(F.when(quoted(_OLD), F.struct(*arrival)))
    of_pair, of_rank = Window.partitionBy(*same, _TWIN), Window.partitionBy(*version, alone, _RANK)
    placed = ranked.withColumn(_PLACE, F.when(alone, place.over(of_rank)).otherwise(place.over(of_pair)))
    arrived = {name: F.coalesce(F.col(f"{_PLACE}.{name}"), quoted(name)) for name in columns.ARRIVAL}
    return placed.where(~quoted(_OLD)).withColumns(arrived).select(*stored_columns)


def hidden_by_earlier(
    table: TableContext,
    base: HalfSnapshot,
    realtime: HalfSnapshot | None,
    replaced: Sequence[str],
    after: DataFrame,
) -> tuple[str, ...]:
    """On a dedup table, a warning of keys whose row in `after` is not visible because another row arrived before it."""
    from pyspark.sql import functions as F

    if not first_wins(table.spec):
        return ()
    key, order = key_struct(table.spec).alias(_KEY), order_struct(table.spec).alias(_ORDER)
    others = rows_that_stay(table, base, realtime, replaced, (key, order))
    rows = after.where(quoted(columns.OP) == columns.OP_ROW).select(key, order)
    mine = rows.groupBy(_KEY).agg(best(table.spec, F.col(_ORDER)).alias(_ORDER))
    first = others.groupBy(_KEY).agg(best(table.spec, F.col(_ORDER)).alias(_FIRST))
    count = mine.join(first, _KEY).where(beats(table.spec, F.col(_FIRST), F.col(_ORDER))).count()
    if not count:
        return ()
    return (
        f"{counted(count, 'key')} of the input will not show what the input says: another row of the key arrived "
        "first, and that one is seen (dedupConfig).",
    )
