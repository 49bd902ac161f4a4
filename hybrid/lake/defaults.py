"""Default values of columns that were added after rows were written, as Spark columns."""

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
    """The columns that older rows may lack, by name, each with the default that queries show."""
    from pyspark.sql import functions as F

    if spec.null_handling:
        return {}

    def default(field: FieldSpec) -> Column:
        value = F.lit(field.default_null)
        return (value if field.single_value else F.array(value)).cast(field.spark_type)

    return {field.name: F.coalesce(quoted(field.name), default(field)) for field in spec.schema.fields}


def filled(spec: TableSpec, names: Collection[str]) -> dict[str, Column]:
    """The `names` that rows may lack, as queries show them for stored rows, by column name.

    A delete marker keeps only the values that decide which version of a key wins.
    """
    from pyspark.sql import functions as F

    is_row = ~quoted(columns.OP).eqNullSafe(F.lit(columns.OP_DELETE))
    read = {name: column for name, column in with_defaults(spec).items() if name in names}
    return {name: F.when(is_row, column).otherwise(quoted(name)) for name, column in read.items()}


def with_added(rows: DataFrame, spec: TableSpec, added: Collection[str]) -> DataFrame:
    """Stored rows of a half, with its `added` columns as queries show them."""
    defaulted = filled(spec, added)
    return rows.withColumns(defaulted) if defaulted else rows
