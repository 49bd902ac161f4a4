"""Reads Pinot's schema JSON."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import cast

from hybrid.config.ingestion_json import expression_fields, expression_notes
from hybrid.errors import Gathered, SpecError, suggestion
from hybrid.schema.document import Section, shown
from hybrid.schema.ingestion import Transform
from hybrid.schema.schema import FieldKind, FieldSpec, Schema
from hybrid.schema.sqltypes import parse_sql_type
from hybrid.schema.sqlvalues import sql_column
from hybrid.schema.time_field import old_time_field
from hybrid.schema.timeformat import TimeFormat
from hybrid.schema.types import WIDER, DataType
from hybrid.schema.values import CONVERTERS, EPOCH, EXPECTED, INT_MIN, LONG_MIN

_LISTS = {
    "dimensionFieldSpecs": FieldKind.DIMENSION,
    "metricFieldSpecs": FieldKind.METRIC,
    "dateTimeFieldSpecs": FieldKind.DATE_TIME,
}
# Ignored without a warning: they describe the column, or repeat what another key says.
_QUIET = {"description", "tags", "fieldType", "granularity", "sampleValue", "delimiter", "allowTrailingZeros"}
# Properties that a DDL gives a column, and for which Pinot has no key.
_SQL_TYPE, _MISSING = "hybrid.sqlType", "hybrid.default"
_FIELD_KEYS = {
    "name", "dataType", "singleValueField", "defaultNullValue", "format", "notNull", "transformFunction", _SQL_TYPE,
    _MISSING, *_QUIET,
}  # fmt: skip
_SCHEMA_KEYS = {
    "schemaName", "primaryKeyColumns", "enableColumnBasedNullHandling", "timeFieldSpec", "complexFieldSpecs",
    "updatedByUser", "description", "tags", *_LISTS,
}  # fmt: skip
# Refused because they change the stored values: ignoring them would store other data than the file asks for.
_REFUSED = {"virtualColumnProvider": "the column would have no data"}
_NO_METRIC = {DataType.BOOLEAN, DataType.TIMESTAMP, DataType.JSON}
COLUMNS_MAX = 10_000
# Delta and Parquet refuse these in names of columns.
_BAD_CHARACTERS = re.compile(r"[ ,;{}()`\n\t=\x00-\x1f]")


def parse_schema(doc: dict[str, object], source: str) -> Schema:
    """The schema in `doc`, read from the file `source`. SpecError names the place of each mistake."""
    top = Section(doc, source)
    warnings = [*top.unknown(_SCHEMA_KEYS)]
    errors, null_handling = Gathered(), False
    with errors:
        _refuse_complex_fields(top)
    fields: list[FieldSpec] = []
    names: dict[str, str] = {}
    transforms: list[Transform] = []
    with errors:
        null_handling = top.boolean("enableColumnBasedNullHandling")
    before = len(errors)
    sections = [*_field_sections(top, errors)]
    has_all_names = len(errors) == before  # a list that cannot be read may name columns of the key
    for section, kind in sections:
        column: str | None = None
        with errors:
            column = _name(section)
        if column is None:
            has_all_names = False
            continue
        with errors:  # alone: a column that is given twice may have an error of its own as well
            _check_new(column, names, section)
        with errors:
            field = _field(section, column, kind, null_handling)
            fields.append(field)
        with errors:
            transforms += _transform(section, column)
        with errors:
            warnings += _field_warnings(section, null_handling)
    with errors:
        old = old_time_field(top)
        if old is not None:
            section, converted, field_warnings = old
            field = _field(section, _name(section), FieldKind.DATE_TIME, null_handling)
            _check_new(field.name, names, section)
            fields.append(field)
            transforms += [converted] if converted else []
            warnings += field_warnings
    if not fields and not errors:
        top.fail("dimensionFieldSpecs", "the schema has no column.")
    key: tuple[str, ...] = ()
    if has_all_names:
        with errors:
            key = _primary_key(top, fields, names.values())
    with errors:
        name = top.text("schemaName")
    errors.raise_all()
    return Schema(name, tuple(fields), key, null_handling, tuple(transforms), tuple(warnings))


def default_null(data_type: DataType, kind: FieldKind) -> object:
    """The value that Pinot stores in place of a missing one."""
    if kind is FieldKind.METRIC and data_type in _METRIC_NULLS:
        return _METRIC_NULLS[data_type]
    return _NULLS[data_type]


_NULLS: dict[DataType, object] = {
    DataType.INT: INT_MIN,
    DataType.LONG: LONG_MIN,
    DataType.FLOAT: float("-inf"),
    DataType.DOUBLE: float("-inf"),
    DataType.BIG_DECIMAL: CONVERTERS[DataType.BIG_DECIMAL](0),
    DataType.BOOLEAN: False,
    DataType.TIMESTAMP: EPOCH,
    DataType.STRING: "null",
    DataType.JSON: "null",
    DataType.BYTES: b"",
}
_METRIC_NULLS: dict[DataType, object] = {
    DataType.INT: 0,
    DataType.LONG: 0,
    DataType.FLOAT: 0.0,
    DataType.DOUBLE: 0.0,
}


def _field_sections(top: Section, errors: Gathered) -> Iterator[tuple[Section, FieldKind]]:
    for key, kind in _LISTS.items():
        sections: list[Section] = []
        with errors:
            sections += top.sections(key)
        for section in sections:
            yield section, kind


def _field(section: Section, name: str, kind: FieldKind, null_handling: bool) -> FieldSpec:
    """A column. SpecError carries the errors of all of its keys."""
    errors = Gathered()
    data_type, single_value, not_null, sql_type = None, True, False, None
    with errors:
        data_type = DataType(section.choice("dataType", tuple(DataType), any_case=False))
    with errors:
        single_value = section.boolean("singleValueField", default=True)
        if kind is not FieldKind.DIMENSION and not single_value:
            section.fail("singleValueField", "false is refused: only a dimension can hold several values.")
    with errors:
        _refuse_keys(section)
    with errors:
        not_null = section.boolean("notNull") and null_handling
    if data_type is None:
        errors.raise_all()
    assert data_type is not None  # else there was an error
    with errors:
        sql_type = _sql_type(section, data_type, single_value)
    default, time_format, missing = None, None, tuple[object, ...]()
    with errors:
        _check_kind(section, kind, data_type)
    with errors:
        default = _default(section, kind, data_type)
    with errors:
        time_format = _time_format(section, data_type) if kind is FieldKind.DATE_TIME else None
    with errors:
        missing = _missing(section, sql_type, data_type, single_value)
    errors.raise_all()
    return FieldSpec(
        name=name,
        data_type=data_type,
        kind=kind,
        single_value=single_value,
        default_null=default,
        time_format=time_format,
        not_null=not_null,
        sql_type=sql_type,
        missing=missing,
    )


def _sql_type(section: Section, data_type: DataType, single_value: bool) -> str | None:
    """The canonical text of a DDL's type. SpecError unless the column's data type stores it.

    A wider data type stores it too: tables exist whose data type alone was widened.
    """
    if not section.has(_SQL_TYPE):
        return None
    text = section.text(_SQL_TYPE)
    try:
        kind = parse_sql_type(text, _SQL_TYPE)
    except SpecError as error:
        section.fail(_SQL_TYPE, f"{shown(text)} cannot be read: {str(error).removeprefix(f'{_SQL_TYPE}: ')}")
    if data_type is not kind.data_type and data_type not in WIDER.get(kind.data_type, ()):
        message = f"{kind.text} is stored as {kind.data_type}, and the dataType is {data_type}."
        section.fail(_SQL_TYPE, f"{message} Write that dataType, or remove the key.")
    if kind.array == single_value:
        held = "several values" if kind.array else "one value"
        message = f"{kind.text} holds {held}, and singleValueField is {str(single_value).lower()}."
        section.fail(_SQL_TYPE, f"{message} Change one of them.")
    return kind.text


def _missing(section: Section, sql_type: str | None, data_type: DataType, single_value: bool) -> tuple[object, ...]:
    """The DEFAULT of a DDL's column as a stored value, in a tuple; an empty tuple where it has none."""
    if _MISSING not in section.doc:
        return ()
    value = section.doc[_MISSING]
    if value is None:
        return (None,)
    convert, expected = sql_column(sql_type, data_type) if sql_type else (CONVERTERS[data_type], EXPECTED[data_type])
    try:
        return (convert(value),) if single_value else ([convert(element) for element in cast("list[object]", value)],)
    except (ValueError, ArithmeticError, TypeError, LookupError):
        section.fail(_MISSING, f"{shown(value)} is not {expected}.")


def _transform(section: Section, column: str) -> Iterator[Transform]:
    """The field's own `transformFunction`, Pinot's old place for a transform."""
    key = "transformFunction"
    if section.has(key):
        function = section.text(key)
        expression_fields(section, key, function, column)
        yield Transform(column, function)


def _name(section: Section) -> str:
    name = section.text("name")
    if name.lower().startswith("_hy_") or name.startswith("$"):
        section.fail("name", f"'{name}' is refused: names beginning with '_hy_' or '$' are the system's own.")
    if _BAD_CHARACTERS.search(name) or len(name) > 200:
        section.fail(
            "name", f"{shown(name)} is refused: a name holds no space, none of ',;{{}}()=`', and 200 characters."
        )
    return name


def _check_kind(section: Section, kind: FieldKind, data_type: DataType) -> None:
    if kind is FieldKind.METRIC and data_type in _NO_METRIC:
        section.fail("dataType", f"'{data_type}' is no type of a metric. List the field under dimensionFieldSpecs.")


def _refuse_keys(section: Section) -> None:
    for key, reason in _REFUSED.items():
        if section.has(key):
            section.fail(key, f"{shown(section.doc[key])} cannot be honoured: {reason}. Remove the key.")


def _default(section: Section, kind: FieldKind, data_type: DataType) -> object:
    value = section.doc.get("defaultNullValue")
    if value is None:
        return default_null(data_type, kind)
    try:
        return CONVERTERS[data_type](value)
    except (ValueError, ArithmeticError, TypeError, LookupError):
        section.fail("defaultNullValue", f"{shown(value)} is not {EXPECTED[data_type]}.")


def _time_format(section: Section, data_type: DataType) -> TimeFormat:
    if section.doc.get("format") is None and data_type is DataType.TIMESTAMP:
        return TimeFormat.parse("TIMESTAMP", section.source, section.at("format"), data_type)
    return TimeFormat.parse(section.text("format"), section.source, section.at("format"), data_type)


def _check_new(name: str, names: dict[str, str], section: Section) -> None:
    """Add the column to `names`, a map from lower-case to written names. SpecError for a duplicate."""
    twin = names.get(name.lower())
    names[name.lower()] = name
    if len(names) > COLUMNS_MAX:
        section.fail("name", f"a table has at most {COLUMNS_MAX} columns.")
    if twin is not None:
        # Spark and DuckDB do not tell columns apart by case.
        other = "" if twin == name else f" (as '{twin}': case does not count)"
        section.fail("name", f"column '{name}' is given twice in the schema{other}. Remove one.")


def _field_warnings(section: Section, null_handling: bool) -> Iterator[str]:
    yield from section.unknown(_FIELD_KEYS | _REFUSED.keys())
    yield from expression_notes(section, "transformFunction")
    if section.boolean("allowTrailingZeros"):
        place = f"{section.source}: {section.at('allowTrailingZeros')}"
        yield f"{place}: true has no effect: zeros at the end of a number are not kept, 1.50 is 1.5."
    if section.has("notNull") and not null_handling:
        yield f"{section.source}: {section.at('notNull')}: has no effect without enableColumnBasedNullHandling."


def _primary_key(top: Section, fields: list[FieldSpec], given: Collection[str]) -> tuple[str, ...]:
    """The key. `given` are the names of all columns, also of those that have an error and are not in `fields`."""
    names = top.texts("primaryKeyColumns")
    # Such a list repeats a name or names no column: the first entries suffice to find it, however long the list is.
    if len(names) > len(given):
        names = names[: len(given) + 1]
    columns, errors = {field.name: field for field in fields}, Gathered()
    for position, name in enumerate(names):
        with errors:
            place = f"primaryKeyColumns[{position}]"
            if name not in columns and name not in given:
                near = suggestion(name, given)
                top.fail(place, f"'{name}' is not a column of the schema.{near} Columns are: {', '.join(given)}.")
            if name in columns and not columns[name].single_value:
                top.fail(place, f"'{name}' holds several values and cannot be part of a primary key.")
            if names.index(name) != position:
                top.fail(place, f"'{name}' is given twice in the primary key.")
    errors.raise_all()
    return names


def _refuse_complex_fields(top: Section) -> None:
    if top.has("complexFieldSpecs"):
        message = "complex fields are not built yet. Use a JSON dimension."
        raise SpecError.at(top.source, "complexFieldSpecs", message)
