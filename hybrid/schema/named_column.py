"""Looks up columns that a config names, with errors that list the columns of the schema."""

from __future__ import annotations

from hybrid.errors import suggestion
from hybrid.schema.document import Section
from hybrid.schema.schema import FieldSpec, Schema


def column(section: Section, key: str, name: str, schema: Schema) -> FieldSpec:
    """The field of the column `name`, which stands at `key`. SpecError, with all columns, when there is none."""
    field = schema.find(name)
    if field is None:
        near = suggestion(name, schema.column_names)
        columns = ", ".join(schema.column_names)
        section.fail(key, f"'{name}' is not a column of the schema '{schema.name}'.{near} Columns are: {columns}.")
    return field
