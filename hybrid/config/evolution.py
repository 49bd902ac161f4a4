"""The rules of schema evolution: which changes of columns are allowed, and why others are refused. Pure.

A column may be added, and a type may be widened to one that holds every old value exactly. Every other change would
lose data, or change the meaning of stored values. It is refused with its reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, isnan
from typing import Any

from hybrid.config.schema_json import default_null
from hybrid.errors import SpecError
from hybrid.schema.schema import FieldKind, FieldSpec, Schema
from hybrid.schema.sqltypes import SqlType, parse_sql_type
from hybrid.schema.types import WIDER, DataType

_NUMBERS = {DataType.INT, DataType.LONG, DataType.FLOAT, DataType.DOUBLE, DataType.BIG_DECIMAL}
# The SQL types of a DDL that are not in WIDER, because one data type stores both.
_SQL_WIDER: Mapping[str, frozenset[str]] = {
    "TINYINT": frozenset({"SMALLINT", "INTEGER"}),
    "SMALLINT": frozenset({"INTEGER"}),
    "CHAR": frozenset({"VARCHAR"}),
}
_LISTS = {
    FieldKind.DIMENSION: "dimensionFieldSpecs",
    FieldKind.METRIC: "metricFieldSpecs",
    FieldKind.DATE_TIME: "dateTimeFieldSpecs",
}
_DEFAULT = "defaultNullValue"


@dataclass(frozen=True)
class ColumnChange:
    """The change of a schema: the names of added columns, and of columns with a wider type."""

    added: tuple[str, ...]
    widened: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.widened)


def is_wider(before: DataType, after: DataType) -> bool:
    """Whether every value of `before` is a value of `after`, a different type."""
    return after in WIDER.get(before, ())


def column_change(table: str, before: Schema, after: Schema) -> ColumnChange:
    """The difference of a table's columns. SpecError, with the reason, for a change that is refused."""
    for refused in _refused(before, after):
        raise SpecError(f"Table '{table}': {refused.what} Nothing was changed.", hint=refused.hint)
    fields_before = {field.name: field for field in before.fields}
    pairs = [(fields_before[field.name], field) for field in after.fields if field.name in fields_before]
    return ColumnChange(
        tuple(field.name for field in after.fields if field.name not in fields_before),
        tuple(new.name for old, new in pairs if old.data_type is not new.data_type),
    )


@dataclass(frozen=True)
class _Refused:
    what: str
    hint: str


def _refused(before: Schema, after: Schema) -> Iterator[_Refused]:
    fields_after = {field.name: field for field in after.fields}
    for field in before.fields:
        if field.name not in fields_after:
            yield _dropped(field, before, after)
        else:
            yield from _changed(field, fields_after[field.name])
    names_before = before.column_names
    for field in after.fields:
        if field.name not in names_before:
            yield from _added(field, names_before, after.null_handling)


def _dropped(field: FieldSpec, before: Schema, after: Schema) -> _Refused:
    names_before = before.column_names
    new = [column.name for column in after.fields if column.name not in names_before]
    renamed = f" ('{new[0]}' would be another column, not the same one by a new name)" if len(new) == 1 else ""
    return _Refused(
        f"column '{field.name}' is not in the new schema{renamed}: dropping it would lose its values.",
        "Keep it in the schema. Without it: create a table of another name, and load it by a query of this one.",
    )


def _changed(before: FieldSpec, after: FieldSpec) -> Iterator[_Refused]:
    where, keep = f"column '{before.name}'", f"Keep '{before.name}' as it is; add a column of another name."
    if before.single_value != after.single_value:
        many = ("one value", "several values")
        yield _Refused(f"{where} holds {many[not before.single_value]}, not {many[not after.single_value]}.", keep)
    old, new = before.data_type, after.data_type
    if old is not new and not is_wider(old, new):
        yield _Refused(f"{where} cannot become {new} from {old}: {_why(old, new)}", keep)
    if before.kind is not after.kind:
        yield _Refused(
            f"{where} is a {before.kind}, not a {after.kind}: what stands for a missing value, and how rows are rolled "
            "up, would differ from what is stored.",
            f"Leave it in {_LISTS[before.kind]}.",
        )
    if _format(before) != _format(after):
        yield _Refused(
            f"{where} has the format '{_format(before)}', not '{_format(after)}': stored times would become others.",
            keep,
        )
    if (
        before.default_null != after.default_null and before.sql_type is None
    ):  # the default of a DDL column is never stored
        yield _Refused(
            f"{where} has the {_DEFAULT} {before.default_null!s}, not {after.default_null!s}: rows that are there hold "
            "the one that was, and nobody could tell them from rows that have this value.",
            f"Leave {_DEFAULT} as it was.",
        )
    yield from _changed_nulls(before, after)
    yield from _changed_sql(before, after)


def _changed_nulls(before: FieldSpec, after: FieldSpec) -> Iterator[_Refused]:
    where = f"column '{before.name}'"
    if after.not_null and not before.not_null:
        yield _Refused(f"{where} cannot become NOT NULL: rows that are there may hold nulls.", "Leave NOT NULL out.")
    elif before.not_null and not after.not_null and before.sql_type is None:
        yield _Refused(f"{where} is notNull: rows that are there hold defaults for nulls.", "Leave notNull as it was.")


def _changed_sql(before: FieldSpec, after: FieldSpec) -> Iterator[_Refused]:
    where, source = f"column '{before.name}'", "hybrid.sqlType"
    if before.sql_type == after.sql_type:
        if before.sql_type is not None and before.data_type is not after.data_type:
            yield _Refused(
                f"{where} becomes {after.data_type}, and its {source} is {before.sql_type} still.",
                f"Write the wider type in both: {source} and dataType.",
            )
        return
    if before.sql_type is None or after.sql_type is None:
        yield _Refused(
            f"{where} is {_sql(before)}, not {_sql(after)}: the table was not described in the same way.",
            "Describe it as before: by a DDL, or by a schema and configs.",
        )
        return
    old, new = parse_sql_type(before.sql_type, source), parse_sql_type(after.sql_type, source)
    if not _is_wider_sql(old, new, before.data_type, after.data_type):
        yield _Refused(
            f"{where} cannot become {new.text} from {old.text}: not every value of it fits.",
            f"Keep '{before.name}' as it is; add a column of another name.",
        )


def _is_wider_sql(old: SqlType, new: SqlType, before: DataType, after: DataType) -> bool:
    """Whether each value of `old` is a value of `new`. Digits before and after the point are compared separately."""
    if new.name == "DECIMAL" and old.name != "DECIMAL":
        digits = {"TINYINT": 3, "SMALLINT": 5, "INTEGER": 10, "BIGINT": 19}.get(old.name)
        return digits is not None and (new.length or 0) - (new.scale or 0) >= digits
    if old.name == new.name == "DECIMAL":
        scale = (old.scale or 0, new.scale or 0)
        return scale[0] <= scale[1] and (old.length or 0) - scale[0] <= (new.length or 0) - scale[1]
    if old.name in ("CHAR", "VARCHAR") and new.name in (old.name, *_SQL_WIDER.get(old.name, ())):
        return new.length is None or (old.length is not None and old.length <= new.length)
    return new.name in _SQL_WIDER.get(old.name, ()) or is_wider(before, after)


def _added(field: FieldSpec, known: Sequence[str], null_handling: bool) -> Iterator[_Refused]:
    where = f"column '{field.name}'"
    twin = next((name for name in known if name.lower() == field.name.lower()), None)
    if twin is not None:
        yield _Refused(f"{where} cannot be used beside '{twin}': case does not count.", f"Write it '{twin}'.")
    if field.not_null and null_handling:
        yield _Refused(
            f"{where} cannot be added as NOT NULL: rows that are there have no value for it.",
            "Add it without NOT NULL.",
        )
    elif not null_handling and field.data_type is DataType.BYTES and field.default_null:
        yield _Refused(
            f"{where} cannot be added with the {_DEFAULT} {field.default_null!r}: not every engine could show it.",
            f"Leave {_DEFAULT} out: it is empty then.",
        )
    elif field.missing:
        yield _Refused(
            f"{where} cannot be added with a DEFAULT: rows that are there would give NULL for it.",
            "Add it without DEFAULT.",
        )


def _why(old: DataType, new: DataType) -> str:
    if new is DataType.STRING:
        return "it would sort and compare as texts do, '10' before '9'."
    if old in _NUMBERS and new in _NUMBERS:
        return f"not every value of {old} is one of {new}, exactly."
    return "the values that are stored have another meaning."


def _format(field: FieldSpec) -> str:
    return field.time_format.text if field.time_format is not None else "none"


def _sql(field: FieldSpec) -> str:
    return field.sql_type or f"{field.data_type} of a schema"


def with_kept_defaults(wanted: Mapping[str, Any], before: Schema) -> dict[str, Any]:
    """The schema document `wanted`, where a column without a default value keeps the default that its rows hold.

    Each type has its own default, so a wider type would change it. `before` is the present schema.
    """

    def kept(one: Mapping[str, Any], kind: FieldKind) -> Mapping[str, Any]:
        field, named = before.find(str(one.get("name"))), one.get("dataType")
        if field is None or field.sql_type is not None or one.get(_DEFAULT) is not None:
            return one
        fitting = (field.data_type, *WIDER.get(field.data_type, ()))
        fits = next((new for new in fitting if new == named), None)
        if fits is None or field.default_null == default_null(fits, kind):
            return one
        return {**one, _DEFAULT: _written(field.default_null)}

    lists = {
        key: [kept(column, kind) for column in wanted[key]]
        for kind, key in _LISTS.items()
        if isinstance(wanted.get(key), list)
    }
    return {**wanted, **lists}


def _written(value: object) -> object:
    """A default value as it is written in a schema document."""
    if isinstance(value, bytes):
        return value.hex()
    return value if isinstance(value, bool | int) or (isinstance(value, float) and isfinite(value)) else _text(value)


def _text(value: object) -> str:
    if isinstance(value, float):
        return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return str(value)
