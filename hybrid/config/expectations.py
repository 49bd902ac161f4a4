"""Parses expectations: conditions that the rows of a job must meet before any of them becomes visible.

    [{"kind": "range", "column": "amount", "min": 0, "on_failure": "warn"}, {"kind": "sql", "sql": "ts <= now()"}]

They are in a table config, in a job spec, or on the command line. This module checks their form, columns and values.
`sql.expectation_sql` parses their SQL conditions later.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NoReturn

from hybrid.config.table_keys import EXPECTATIONS
from hybrid.errors import Gathered, SpecError, UsageError, suggestion
from hybrid.schema.document import Section, shown
from hybrid.schema.jsontext import parse_plain_json
from hybrid.schema.schema import FieldSpec, Schema
from hybrid.schema.types import DataType
from hybrid.schema.values import CONVERTERS, EXPECTED

OPTION = "--expect"
_NAME_MAX = 60
_SHORT = re.compile(r"\s*(?:(warn|drop|fail)\s*:)?\s*(.*)", re.DOTALL | re.IGNORECASE)
_NUMBERS = (DataType.INT, DataType.LONG, DataType.FLOAT, DataType.DOUBLE, DataType.BIG_DECIMAL)
_ORDERED = (*_NUMBERS, DataType.STRING, DataType.TIMESTAMP)
_LISTED = (*_ORDERED, DataType.BOOLEAN, DataType.BYTES)


class ExpectationKind(StrEnum):
    """The kind of an expectation: on each row, on rows of the same values (UNIQUE), or on the number of rows."""

    NOT_NULL = "not_null"
    RANGE = "range"
    UNIQUE = "unique"
    ACCEPTED_VALUES = "accepted_values"
    ROW_COUNT_CHANGE = "row_count_change"
    SQL = "sql"


class OnFailure(StrEnum):
    """The consequence of a violated expectation: a warning (WARN), leaving the rows out (DROP), or an error (FAIL)."""

    WARN = "warn"
    DROP = "drop"
    FAIL = "fail"


@dataclass(frozen=True)
class Expectation:
    """An expectation. `columns` are the checked columns; `low` and `high` the inclusive limits of a range, None: none.

    `values` are the accepted values; `percent` is how far the number of rows may differ; `sql` the condition, in
    Pinot's SQL, that must hold for each row. `place` is its source for errors.
    """

    kind: ExpectationKind
    name: str
    on_failure: OnFailure = OnFailure.FAIL
    columns: tuple[str, ...] = ()
    low: object = None
    high: object = None
    values: tuple[object, ...] = ()
    percent: float = 0.0
    sql: str = ""
    place: str = field(default="", compare=False)


def parse_expectations(section: Section, schema: Schema) -> tuple[Expectation, ...]:
    """The expectations at `hybrid.expectations` of a section: a list or its JSON text. SpecError names the place."""
    value = section.doc.get(EXPECTATIONS)
    if isinstance(value, str) and value.strip():
        value = _load(value, lambda message: section.fail(EXPECTATIONS, message))
    if value in (None, ""):
        return ()
    read = Section({EXPECTATIONS: value}, section.source, section.path)
    errors, expectations = Gathered(), list[Expectation]()
    for item in read.sections(EXPECTATIONS):
        with errors:
            expectations.append(_parse(item, schema))
    errors.raise_all()
    return named_apart(expectations)


def parse_expect(text: str, schema: Schema) -> tuple[Expectation, ...]:
    """The expectations of an `--expect`: a JSON object or a list of them, or `[warn:|drop:|fail:] <row condition>`.

    UsageError for anything else.
    """
    try:
        if text.lstrip().startswith(("{", "[")):
            value = _load(text, _fail_option)
            return _parse_option(value if isinstance(value, list) else [value], schema)
        parts = _SHORT.fullmatch(text)
        assert parts is not None
        doc: dict[str, object] = {"kind": "sql", "sql": parts[2], "on_failure": parts[1] or "fail"}
        return _parse_option([doc], schema)
    except SpecError as error:
        raise UsageError(str(error), hint=error.hint) from error


def named_apart(expectations: Iterable[Expectation]) -> tuple[Expectation, ...]:
    """The expectations with unique names: the second `range_amount` becomes `range_amount_2`."""
    taken: set[str] = set()
    renamed = []
    for expectation in expectations:
        name, number = expectation.name, 1
        while name in taken:
            number += 1
            name = f"{expectation.name}_{number}"
        taken.add(name)
        renamed.append(replace(expectation, name=name))
    return tuple(renamed)


def _parse_option(items: list[object], schema: Schema) -> tuple[Expectation, ...]:
    """The expectations of an option. The place of a single one has no index: `--expect: column`."""
    if len(items) != 1:
        return tuple(_parse(item, schema) for item in Section({"": items}, OPTION).sections(""))
    if not isinstance(items[0], dict):
        _fail_option(f"{shown(items[0])} is not an object: write {{...}}.")
    return (_parse(Section(items[0], OPTION), schema),)


def _fail_option(message: str) -> NoReturn:
    raise UsageError(f"{OPTION}: {message}")


def _load(text: str, fail: Callable[[str], NoReturn]) -> object:
    try:
        return parse_plain_json(text)
    except (ValueError, RecursionError) as error:
        fail(f"is not JSON: {error}.")


def _parse(section: Section, schema: Schema) -> Expectation:
    kind = ExpectationKind(section.choice("kind", tuple(ExpectationKind)))
    _refuse_unknown(section, kind)
    on_failure = OnFailure(section.choice("on_failure", tuple(OnFailure), OnFailure.FAIL))
    if kind is ExpectationKind.ROW_COUNT_CHANGE and on_failure is OnFailure.DROP:
        section.fail("on_failure", "'drop' leaves rows out, and this is of no one row. Write warn or fail.")
    expectation = _OF_KIND[kind](section, schema)
    place = section.at("sql") if kind is ExpectationKind.SQL and section.source != OPTION else section.path
    where = f"{section.source}: {place}" if place else section.source
    name = section.text("name", "") or _default_name(kind, expectation)
    return replace(expectation, name=name, on_failure=on_failure, place=where)


def _default_name(kind: ExpectationKind, found: Expectation) -> str:
    """The name of an unnamed expectation: `range_amount`, or the text of a condition."""
    if kind is not ExpectationKind.SQL:
        return "_".join([kind, *found.columns])
    text = " ".join(found.sql.split())
    return text if len(text) <= _NAME_MAX else f"{text[: _NAME_MAX - 3]}..."


def _refuse_unknown(section: Section, kind: ExpectationKind) -> None:
    keys = ("kind", "name", "on_failure", *_KEYS[kind])
    for key in section.doc:
        if key not in keys:
            section.fail(key, f"{kind} has no such key.{suggestion(key, keys)} Its keys are: {', '.join(keys)}.")


def _not_null(section: Section, schema: Schema) -> Expectation:
    return Expectation(ExpectationKind.NOT_NULL, "", columns=(_column(section, "column", schema).name,))


def _range(section: Section, schema: Schema) -> Expectation:
    column = _single(section, schema, _ORDERED)
    low, high = (_value(section, key, column, section.doc.get(key)) for key in ("min", "max"))
    if low is None and high is None:
        section.fail("min", "is missing, and so is max. A range has one of them, or both.")
    if low is not None and high is not None and _stored(column, low) > _stored(column, high):  # type: ignore[operator]
        section.fail("max", f"{shown(high)} is below min, which is {shown(low)}.")
    return Expectation(ExpectationKind.RANGE, "", columns=(column.name,), low=low, high=high)


def _unique(section: Section, schema: Schema) -> Expectation:
    names = section.texts("columns")
    if not names:
        section.fail("columns", 'is missing. Write the columns that together name a row: ["order_id"].')
    columns = tuple(_named(section, "columns", name, schema).name for name in names)
    if len(set(columns)) < len(columns):
        section.fail("columns", f"{shown(list(names))} has a column twice.")
    return Expectation(ExpectationKind.UNIQUE, "", columns=columns)


def _accepted(section: Section, schema: Schema) -> Expectation:
    column = _single(section, schema, _LISTED)
    values = section.doc.get("values")
    if not isinstance(values, list) or not values:
        section.fail("values", f"{shown(values)} is not a list of values.")
    for position, value in enumerate(values):
        if value is None:
            section.fail(f"values[{position}]", "null is no value here; nulls are looked for with not_null.")
        _value(section, f"values[{position}]", column, value)
    return Expectation(ExpectationKind.ACCEPTED_VALUES, "", columns=(column.name,), values=tuple(values))


def _row_count_change(section: Section, schema: Schema) -> Expectation:
    value = section.doc.get("percent")
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        section.fail("percent", f"{shown(value)} is not a number from 0 on.")
    return Expectation(ExpectationKind.ROW_COUNT_CHANGE, "", percent=float(value))


def _sql(section: Section, schema: Schema) -> Expectation:
    return Expectation(ExpectationKind.SQL, "", sql=section.text("sql"))


def _column(section: Section, key: str, schema: Schema) -> FieldSpec:
    return _named(section, key, section.text(key), schema)


def _named(section: Section, key: str, name: str, schema: Schema) -> FieldSpec:
    field_spec = schema.find(name)
    if field_spec is None:
        near = suggestion(name, schema.column_names)
        section.fail(key, f"'{name}' is not a column of '{schema.name}'.{near}")
    return field_spec


def _single(section: Section, schema: Schema, types: Iterable[DataType]) -> FieldSpec:
    """A single-value column of a type that the kind can check."""
    column = _column(section, "column", schema)
    if not column.single_value:
        section.fail("column", f"'{column.name}' holds several values; this kind looks at one.")
    if column.data_type not in types:
        section.fail("column", f"'{column.name}' is {column.data_type}; this kind takes {', '.join(types)}.")
    return column


def _value(section: Section, key: str, column: FieldSpec, value: object) -> object:
    """A value of the column's type, as it is written, or None. SpecError for a value of another type."""
    if value is None:
        return None
    is_text, wants_text = isinstance(value, str), column.data_type in (DataType.STRING, DataType.BYTES)
    fits = isinstance(value, str | int | float) and (is_text or not wants_text)
    if isinstance(value, bool) and column.data_type is not DataType.BOOLEAN:
        fits = False
    try:
        if fits:
            _stored(column, value)
    except (ValueError, TypeError, ArithmeticError, KeyError):
        fits = False
    if not fits:
        section.fail(key, f"{shown(value)} does not fit column '{column.name}'; it is {EXPECTED[column.data_type]}.")
    return value


def _stored(column: FieldSpec, value: object) -> object:
    return CONVERTERS[column.data_type](value)


_KEYS: dict[ExpectationKind, tuple[str, ...]] = {
    ExpectationKind.NOT_NULL: ("column",),
    ExpectationKind.RANGE: ("column", "min", "max"),
    ExpectationKind.UNIQUE: ("columns",),
    ExpectationKind.ACCEPTED_VALUES: ("column", "values"),
    ExpectationKind.ROW_COUNT_CHANGE: ("percent",),
    ExpectationKind.SQL: ("sql",),
}
_OF_KIND: Mapping[ExpectationKind, Callable[[Section, Schema], Expectation]] = {
    ExpectationKind.NOT_NULL: _not_null,
    ExpectationKind.RANGE: _range,
    ExpectationKind.UNIQUE: _unique,
    ExpectationKind.ACCEPTED_VALUES: _accepted,
    ExpectationKind.ROW_COUNT_CHANGE: _row_count_change,
    ExpectationKind.SQL: _sql,
}
