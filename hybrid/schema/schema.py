"""A table's schema: Pinot's schema JSON, as values."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as dataclass_field
from enum import StrEnum
from typing import TYPE_CHECKING

from hybrid.schema.ingestion import Transform
from hybrid.schema.types import DataType

if TYPE_CHECKING:
    import pyarrow as pa

    from hybrid.schema.timeformat import TimeFormat


class FieldKind(StrEnum):
    """The kind of a field, by Pinot's three lists of fields."""

    DIMENSION = "dimension"
    METRIC = "metric"
    DATE_TIME = "dateTime"


@dataclass(frozen=True)
class FieldSpec:
    """A column. `default_null` is the stored (already typed) value in place of a missing one.

    In a multi-value field it is the only element. `not_null`: a null becomes the default although the schema keeps
    nulls. `sql_type` is the type in a DDL; with it a null in a `not_null` column is refused. `missing` is the stored
    value for a record without the field, in a tuple of one; an empty tuple: null.
    """

    name: str
    data_type: DataType
    kind: FieldKind
    single_value: bool = True
    default_null: object = None
    time_format: TimeFormat | None = None
    not_null: bool = False
    sql_type: str | None = None
    missing: tuple[object, ...] = ()

    @property
    def is_required(self) -> bool:
        """Whether a record without a value for the column is refused."""
        return self.not_null and self.sql_type is not None and not self.missing

    @property
    def type_name(self) -> str:
        """The data type as users see it: `STRING`, or `STRING[]` for a multi-value field."""
        return f"{self.data_type}{'' if self.single_value else '[]'}"

    @property
    def spark_type(self) -> str:
        """The Spark SQL type of the column; an array for a multi-value field."""
        element_type = self.data_type.spark_type
        return element_type if self.single_value else f"array<{element_type}>"

    def arrow_type(self) -> pa.DataType:
        """The Arrow type of the column; a list for a multi-value field."""
        import pyarrow as pa

        element_type = self.data_type.arrow_type()
        return element_type if self.single_value else pa.list_(element_type)


@dataclass(frozen=True)
class Schema:
    """The columns of a table in the order of the file, and its primary key (empty: keyless).

    `null_handling` is Pinot's enableColumnBasedNullHandling: nulls are stored as nulls except in `not_null` fields.
    `transforms` are those in the schema itself (a field's transformFunction, a converted timeFieldSpec); a table
    config may have others. `warnings` name the keys of the file that have no effect.
    """

    name: str
    fields: tuple[FieldSpec, ...]
    primary_key: tuple[str, ...] = ()
    null_handling: bool = False
    transforms: tuple[Transform, ...] = ()
    warnings: tuple[str, ...] = dataclass_field(default=(), compare=False)

    @property
    def column_names(self) -> tuple[str, ...]:
        """All column names, in the order of the file."""
        return tuple(field.name for field in self.fields)

    def find(self, name: str) -> FieldSpec | None:
        """The field of that exact name, or None."""
        return next((field for field in self.fields if field.name == name), None)
