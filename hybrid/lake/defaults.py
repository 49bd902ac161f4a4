"""What rows show of columns that were added after them, as Spark's columns."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from hybrid.config.table_config import TableSpec
from hybrid.lake.layout import quoted
from hybrid.schema.schema import FieldSpec
from hybrid.table import columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def with_defaults(spec: TableSpec) -> dict[str, Column]:
    """The columns that rows from before them may lack, by name, each with the default that queries show then."""
    from pyspark.sql import functions as F

    if spec.null_handling:
        return {}

    def default(field: FieldSpec) -> Column:
        one = F.lit(field.default_null)
        return (one if field.single_value else F.array(one)).cast(field.spark_type)

    return {field.name: F.coalesce(quoted(field.name), default(field)) for field in spec.schema.fields}


def filled(spec: TableSpec, names: Collection[str]) -> dict[str, Column]:
    """Those of these columns that rows may lack, by name, as queries show them of stored rows.

    A delete marker has no other values than those that decide which version wins.
    """
    from pyspark.sql import functions as F

    is_row = ~quoted(columns.OP).eqNullSafe(F.lit(columns.OP_DELETE))
    read = {name: column for name, column in with_defaults(spec).items() if name in names}
    return {name: F.when(is_row, column).otherwise(quoted(name)) for name, column in read.items()}


def with_added(rows: DataFrame, spec: TableSpec, added: Collection[str]) -> DataFrame:
    """Stored rows of a half with its `added` columns as queries show them."""
    found = filled(spec, added)
    return rows.withColumns(found) if found else rows
