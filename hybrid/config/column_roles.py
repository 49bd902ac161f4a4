"""The columns that have a role by a table's configs: its time column, sorted and indexed columns, a DDL's order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NoReturn

from hybrid.config.table_config import Half
from hybrid.config.table_halves import Halves
from hybrid.config.table_keys import COLUMNS
from hybrid.errors import suggestion
from hybrid.schema.document import Section, shown
from hybrid.schema.jsontext import parse_json
from hybrid.schema.named_column import column
from hybrid.schema.schema import FieldKind, Schema
from hybrid.schema.types import DataType

_COLUMNS_HINT = "It is the order of cells in CSV; without the key it is that of the schema."
_TIME_TYPES = {DataType.INT, DataType.LONG, DataType.STRING, DataType.TIMESTAMP}


def time_column_of(halves: Halves, schema: Schema) -> str | None:
    """The time column, on which both halves agree; None without one."""
    sections: dict[str | None, Section] = {}
    for top in halves.values():
        section = top.section("segmentsConfig")
        _check_schema_name(section, schema)
        sections[_own_time_column(section, schema)] = section
    first, *others = sections
    if others:
        if first is None:
            _refuse_other(sections, None, others[0])
        _refuse_other(sections, others[0], first)
    return first


def _refuse_other(sections: Mapping[str | None, Section], other: str | None, name: str | None) -> NoReturn:
    """Raises SpecError for the time column of a config that is not `name`, the one of the other config."""
    section, key = sections[other], "timeColumnName"
    if other is None:
        message = (
            f"is missing, and in {sections[name].source} it is '{name}': both halves agree.{section.misspelling(key)}"
        )
    else:
        message = f"'{other}' is not '{name}', as in {sections[name].source}: both halves agree."
    section.fail(key, message)


def _own_time_column(section: Section, schema: Schema) -> str | None:
    key = "timeColumnName"
    if not section.has(key):
        return None
    field = column(section, key, section.text(key), schema)
    if field.kind is not FieldKind.DATE_TIME:
        times = ", ".join(f.name for f in schema.fields if f.kind is FieldKind.DATE_TIME) or "none"
        message = f"'{field.name}' is a {field.kind} field; the time column is one of dateTimeFieldSpecs ({times})."
        section.fail(key, message)
    if field.data_type not in _TIME_TYPES:
        section.fail(key, f"'{field.name}' is {field.data_type}; a time column is INT, LONG, STRING or TIMESTAMP.")
    return field.name


def time_warnings(halves: Halves, schema: Schema, time_column: str | None) -> Iterator[str]:
    """A warning for a time column of numbers whose pattern needs zeros in front, which numbers do not keep."""
    field = schema.find(time_column) if time_column is not None else None
    text = field.time_format.unreadable_text if field is not None and field.time_format is not None else None
    if field is None or field.time_format is None or text is None:
        return
    source = next(iter(halves.values())).source
    yield (
        f"{source}: segmentsConfig.timeColumnName: '{field.name}' is {field.data_type} with the pattern "
        f"'{field.time_format.pattern}': a time like {text} becomes the number {int(text)}, which the pattern cannot "
        'read, and its row is rejected. Write "dataType": "STRING", or a pattern that begins with the year (yyyy).'
    )


def _check_schema_name(section: Section, schema: Schema) -> None:
    name = section.text("schemaName", schema.name)
    if name != schema.name:
        section.fail("schemaName", f"'{name}' is not the schema that was given, '{schema.name}'.")


def sort_columns(halves: Halves, schema: Schema) -> tuple[str, ...]:
    """The offline half's sort columns, because only the move sorts; else the realtime half's."""
    for half in (Half.OFFLINE, Half.REALTIME):
        if half in halves and halves[half].section("tableIndexConfig").has("sortedColumn"):
            section = halves[half].section("tableIndexConfig")
            fields = [column(section, "sortedColumn", name, schema) for name in section.texts("sortedColumn")]
            for field in fields:
                if not field.single_value:
                    section.fail("sortedColumn", f"'{field.name}' holds several values and cannot be sorted by.")
            return tuple(dict.fromkeys(field.name for field in fields))
    return ()


def index_columns(halves: Halves, schema: Schema) -> tuple[str, ...]:
    """The `invertedIndexColumns` of both halves. Unknown names are ignored, because only speed depends on them."""
    sections = [top.section("tableIndexConfig") for top in halves.values()]
    key = "invertedIndexColumns"
    names = [name for section in sections if section.has(key) for name in section.texts(key)]
    single = {field.name for field in schema.fields if field.single_value}
    return tuple(name for name in dict.fromkeys(names) if name in single)


def ddl_columns(custom: Section, schema: Schema) -> tuple[str, ...]:
    """All columns in the order of a DDL's `hybrid.columns`; empty without that key.

    Columns that it does not name were added later, and come last. SpecError unless it is a JSON list of columns.
    """
    if not custom.has(COLUMNS):
        return ()
    text = custom.text(COLUMNS)
    try:
        names = parse_json(text)
    except ValueError:
        names = None
    if not isinstance(names, list) or not all(type(name) is str for name in names):
        custom.fail(COLUMNS, f"{shown(text)} is no JSON list of column names. {_COLUMNS_HINT}")
    for name in names:
        if name not in schema.column_names:
            near = suggestion(name, schema.column_names)
            custom.fail(COLUMNS, f"{shown(name)} is not a column of the schema.{near} {_COLUMNS_HINT}")
        if names.count(name) > 1:
            custom.fail(COLUMNS, f"'{name}' is given twice. {_COLUMNS_HINT}")
    return (*names, *(name for name in schema.column_names if name not in names))
