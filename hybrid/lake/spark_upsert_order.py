"""Which row of a key wins, as Spark's columns: the direction of `hybrid.table.upsert_order` in one place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hybrid.config.table_config import TableSpec
from hybrid.lake.layout import quoted
from hybrid.table.upsert_order import first_wins, winning_order

if TYPE_CHECKING:
    from pyspark.sql import Column


def key_struct(spec: TableSpec) -> Column:
    """The primary key as one value."""
    from pyspark.sql import functions as F

    return F.struct(*(quoted(name) for name in spec.schema.primary_key))


def order_struct(spec: TableSpec) -> Column:
    """What rows of a key are compared by, as one value. Upsert and dedup tables only."""
    from pyspark.sql import functions as F

    # Each once: where rows are compared by their arrival it stands twice, and no file holds two columns of one name.
    return F.struct(*(quoted(name) for name in dict.fromkeys(winning_order(spec))))


def winners_first(spec: TableSpec, names: Sequence[str]) -> list[Column]:
    """Orders rows by these columns so that the winner comes first."""
    least = first_wins(spec)
    return [quoted(name).asc_nulls_first() if least else quoted(name).desc_nulls_last() for name in names]


def best(spec: TableSpec, order: Column) -> Column:
    """Of several rows the order of the one that wins; an aggregate, or a window's function."""
    from pyspark.sql import functions as F

    return F.min(order) if first_wins(spec) else F.max(order)


def worst(spec: TableSpec, order: Column) -> Column:
    """Of several rows the order of the one that all others beat."""
    from pyspark.sql import functions as F

    return F.max(order) if first_wins(spec) else F.min(order)


def best_by(spec: TableSpec, row: Column, order: Column) -> Column:
    """Of several rows the one that wins."""
    from pyspark.sql import functions as F

    return F.min_by(row, order) if first_wins(spec) else F.max_by(row, order)


def beats(spec: TableSpec, one: Column, other: Column) -> Column:
    """Whether the order `one` wins over `other`."""
    return one < other if first_wins(spec) else one > other
