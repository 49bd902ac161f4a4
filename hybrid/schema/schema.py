"""A table's schema: what Pinot's schema JSON says, as values."""

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
    """Which of Pinot's three lists a field stands in."""

    DIMENSION = "dimension"
    METRIC = "metric"
    DATE_TIME = "dateTime"


@dataclass(frozen=True)
class FieldSpec:
    """One column. `default_null` is the stored (already typed) value that stands for a missing one.

    Of a multi-value field it is the one element. `not_null`: a null becomes the default though the schema keeps nulls.
    `sql_type` is the type that a DDL gave it; a null in a `not_null` column is refused then. `missing`: the stored
    value for a record that has no such field, in a tuple of one; empty: null.
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
        """Whether a record without a value for it is refused."""
        return self.not_null and self.sql_type is not None and not self.missing

    @property
    def spark_type(self) -> str:
        """The Spark SQL type of the column; an array for a multi-value field."""
        one = self.data_type.spark_type
        return one if self.single_value else f"array<{one}>"

    def arrow_type(self) -> pa.DataType:
        """The Arrow type of the column; a list for a multi-value field."""
        import pyarrow as pa

        one = self.data_type.arrow_type()
        return one if self.single_value else pa.list_(one)


@dataclass(frozen=True)
class Schema:
    """The columns of a table in the order of the file, and its primary key (empty: keyless).

    `null_handling` is Pinot's enableColumnBasedNullHandling: nulls are stored as nulls but for `not_null` fields.
    `transforms` are those that the schema itself gives (a field's transformFunction, a converted timeFieldSpec); a
    table config may have others. `warnings` name the keys of the file that have no effect.
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
