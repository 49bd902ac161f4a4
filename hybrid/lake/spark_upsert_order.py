"""The upsert order as Spark columns: which row of a key wins, by `hybrid.table.upsert_order`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hybrid.config.table_config import TableSpec
from hybrid.lake.layout import quoted
from hybrid.table.upsert_order import first_wins, winning_order

if TYPE_CHECKING:
    from pyspark.sql import Column


def key_struct(spec: TableSpec) -> Column:
    """The primary key as one struct."""
    from pyspark.sql import functions as F

    return F.struct(*(quoted(name) for name in spec.schema.primary_key))


def order_struct(spec: TableSpec) -> Column:
    """The values by which rows of a key are compared, as one struct. Upsert and dedup tables only."""
    from pyspark.sql import functions as F

    # Without duplicates: arrival columns can occur twice, and a file cannot hold two columns of one name.
    return F.struct(*(quoted(name) for name in dict.fromkeys(winning_order(spec))))


def winners_first(spec: TableSpec, names: Sequence[str]) -> list[Column]:
    """Sort expressions over these columns that put the winner first."""
    least = first_wins(spec)
    return [quoted(name).asc_nulls_first() if least else quoted(name).desc_nulls_last() for name in names]


def best(spec: TableSpec, order: Column) -> Column:
    """The order value of the winning row; an aggregate or window function."""
    from pyspark.sql import functions as F

    return F.min(order) if first_wins(spec) else F.max(order)


def worst(spec: TableSpec, order: Column) -> Column:
    """The order value of the row that every other row beats."""
    from pyspark.sql import functions as F

    return F.max(order) if first_wins(spec) else F.min(order)


def best_by(spec: TableSpec, row: Column, order: Column) -> Column:
    """The winning row of a group."""
    from pyspark.sql import functions as F

    return F.min_by(row, order) if first_wins(spec) else F.max_by(row, order)


def beats(spec: TableSpec, one: Column, other: Column) -> Column:
    """Whether the order `one` wins over `other`."""
    return one < other if first_wins(spec) else one > other
