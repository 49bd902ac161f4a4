"""Finds the time column of a DDL table: the column with LATENESS, or the one in `hybrid.timeColumn`."""

from __future__ import annotations

from dataclasses import dataclass

from hybrid.config.ddl_columns import Column, Elements
from hybrid.config.ddl_options import BUCKET, BUFFER, TIME_COLUMN, TIME_UNIT, Options
from hybrid.errors import suggestion
from hybrid.schema.period import UNITS_MS
from hybrid.schema.timeformat import UNITS_NS

_DEFAULT_UNIT = "MILLISECONDS"
_TYPES = ("TIMESTAMP", "DATE", "BIGINT", "INTEGER")
_INTEGERS = ("BIGINT", "INTEGER")
_NS_PER_MS = 1_000_000


@dataclass(frozen=True)
class TimeColumn:
    """The time column, its `format` and `granularity` in Pinot's syntax, and the buffer from LATENESS, as a period."""

    column: Column
    format: str
    granularity: str
    buffer: str | None


def time_column(elements: Elements, options: Options) -> TimeColumn | None:
    """The time column, or None on a table without one. Adds a warning to `elements` for a LATENESS without effect."""
    named = options.text(TIME_COLUMN)
    column = _named(elements, options, named) if named is not None else _late(elements, options)
    if column is None:
        _check_unused(options)
        return None
    _check_type(column, options)
    for other in elements.columns:
        if other.lateness is not None and other is not column:
            message = f"the LATENESS of '{other.name}' has no effect: '{column.name}' is the time column."
            elements.warnings.append(options.sql.warning(other.start, message))
    unit = _unit(elements, options, column)
    form, granularity = _format(column, unit)
    return TimeColumn(column, form, granularity, _buffer(options, column, unit))


def period_text(millis: int) -> str:
    """A period as Pinot writes it: 5400000 is `1h30m`, 0 is `0s`."""
    parts = []
    for name, length in UNITS_MS.items():
        count, millis = divmod(millis, length)
        parts += [f"{count}{name}"] if count else []
    return "".join(parts) or "0s"


def _named(elements: Elements, options: Options, name: str) -> Column:
    column = elements.find(name)
    if column is None:
        near = suggestion(name, [candidate.name for candidate in elements.columns])
        options.fail(TIME_COLUMN, f"'{name}' is not a column of the table.{near} Columns are: {elements.names}.")
    return column


def _late(elements: Elements, options: Options) -> Column | None:
    late = [column for column in elements.columns if column.lateness is not None]
    if len(late) > 1:
        names = " and ".join(f"'{column.name}'" for column in late)
        message = f"{names} have a LATENESS, and a table has one time column. Name it with '{TIME_COLUMN}'."
        options.sql.fail(late[1].start, message)
    return late[0] if late else None


def _check_unused(options: Options) -> None:
    for key in (TIME_UNIT, BUCKET, BUFFER):
        if key in options:
            message = f"the table has no time column. Name it with '{TIME_COLUMN}', or give it a LATENESS."
            options.fail(key, message)


def _check_type(column: Column, options: Options) -> None:
    if column.type.array or column.type.name not in _TYPES:
        message = f"'{column.name}' is {column.type.text}; a time column is {', '.join(_TYPES)}."
        options.sql.fail(column.start, message)
    if not column.not_null:
        message = f"the time column '{column.name}' must be NOT NULL: a row whose time is null is rejected."
        options.sql.fail(column.start, message)


def _unit(elements: Elements, options: Options, column: Column) -> str:
    """The unit in which a column of numbers counts."""
    text = options.text(TIME_UNIT)
    if text is not None and column.type.name not in _INTEGERS:
        options.fail(TIME_UNIT, f"'{column.name}' is {column.type.text} and counts no units. Remove the property.")
    unit = (text or _DEFAULT_UNIT).upper()
    if unit not in UNITS_NS:
        options.fail(TIME_UNIT, f"'{text}' is not known.{suggestion(unit, UNITS_NS)} Known are: {', '.join(UNITS_NS)}.")
    if column.type.name == "INTEGER" and UNITS_NS[unit] <= _NS_PER_MS:
        message = f"'{column.name}' is INTEGER and holds {unit} until January 1970 only. Write BIGINT or '{TIME_UNIT}'."
        elements.warnings.append(options.sql.warning(column.start, message))
    return unit


def _format(column: Column, unit: str) -> tuple[str, str]:
    if column.type.name == "TIMESTAMP":
        return "TIMESTAMP", "1:MILLISECONDS"
    if column.type.name == "DATE":
        return "1:DAYS:SIMPLE_DATE_FORMAT:yyyy-MM-dd", "1:DAYS"
    return f"1:{unit}:EPOCH", f"1:{unit}"


def _buffer(options: Options, column: Column, unit: str) -> str | None:
    """`hybrid.bufferTimePeriod`, else the LATENESS, else None."""
    period = options.period(BUFFER)
    if period is not None or column.lateness is None:
        return period
    if column.lateness_unit == "ms":
        return period_text(column.lateness)
    text = period_text(-(-column.lateness * UNITS_NS[unit] // _NS_PER_MS))
    if column.lateness * UNITS_NS[unit] // _NS_PER_MS > _MAX_MS:
        options.sql.fail(column.start, f"the LATENESS of '{column.name}' is longer than a thousand years, {text}.")
    return text


_MAX_MS = 1000 * 366 * UNITS_MS["d"]
