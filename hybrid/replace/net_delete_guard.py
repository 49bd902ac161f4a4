"""Guards tables without a key whose sources delete: a swap may not remove a row that has an outstanding delete.

A row is visible as often as its inserts outnumber its deletes. A swap that removes an insert but keeps its delete
would leave a delete without a row. That delete would then hide an equal row that arrives later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half
from hybrid.errors import ConflictError
from hybrid.lake.half_frames import newest_rows, rows_in
from hybrid.lake.layout import quoted
from hybrid.lake.log import HalfSnapshot
from hybrid.lake.table_context import TableContext
from hybrid.replace.swap import unmoved_rows
from hybrid.table import columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_INSERTS, _DELETES, _LOST = "_hy_inserts", "_hy_deletes", "_hy_lost"


def refuse_swallowing(table: TableContext, base: HalfSnapshot, replaced: Sequence[str], after: DataFrame) -> None:
    """ConflictError when replacing the segments `replaced` by `after` leaves deletes without their rows."""
    if not table.spec.nets_deletes or not replaced or Half.REALTIME not in table.spec.halves:
        return
    realtime = table.half(Half.REALTIME)
    if not realtime.realtime.deletes and not base.offline.deletes:
        return
    stored, users = newest_rows(table.bench, base.path), [quoted(name) for name in table.spec.schema.column_names]
    gone = quoted(columns.SEGMENT).isin(list(replaced))
    live = unmoved_rows(table, realtime, base)
    compared = [*users, quoted(columns.OP)]
    beside = stored.where(~gone).select(*compared).unionByName(live.select(*compared))
    count = _swallowing(stored.where(gone).select(*compared), after.select(*compared), beside, users)
    if count:
        raise ConflictError(
            f"{count} of the rows that would go {'is' if count == 1 else 'are'} already deleted on "
            f"'{table.name}': the deletes would stay and swallow equal rows that arrive later. Nothing was changed.",
            hint="Leave these rows in the correction: the deletes hide them.",
        )


def refuse_reviving(table: TableContext, base: HalfSnapshot, replaced: Sequence[str]) -> None:
    """ConflictError when replaced segments hold deletes of equal rows: these rows would become visible again."""
    if not table.spec.nets_deletes or not replaced:
        return
    count = rows_in(table.bench, base, replaced).where(f"{columns.OP} = '{columns.OP_DELETE}'").count()
    if count:
        raise ConflictError(
            f"The segments that would be replaced hold {count} delete{'s' * (count != 1)}, which take equal rows "
            f"of '{table.name}' away, wherever these lie: they would come back. Nothing was changed.",
            hint="Add rows with hybrid job run SPEC.yml --append, or send what is to go as deletes to the topic.",
        )


def _swallowing(before: DataFrame, after: DataFrame, beside: DataFrame, users: Sequence[Column]) -> int:
    """The number of distinct rows that lose copies and then have more deletes than inserts."""
    from pyspark.sql import functions as F

    is_row = F.col(columns.OP) == columns.OP_ROW
    row, delete = is_row.cast("int"), (~is_row).cast("int")
    zero = F.lit(0)
    parts = [
        before.select(*users, zero.alias(_INSERTS), zero.alias(_DELETES), row.alias(_LOST)),
        after.select(*users, row.alias(_INSERTS), delete.alias(_DELETES), (-row).alias(_LOST)),
        beside.select(*users, row.alias(_INSERTS), delete.alias(_DELETES), zero.alias(_LOST)),
    ]
    every = parts[0].unionByName(parts[1]).unionByName(parts[2])
    sums = every.groupBy(*users).agg(*(F.sum(name).alias(name) for name in (_INSERTS, _DELETES, _LOST)))
    return int(sums.where(f"{_LOST} > 0 AND {_DELETES} > {_INSERTS}").count())
