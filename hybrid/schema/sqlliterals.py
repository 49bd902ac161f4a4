"""Parses constants in DDL: a column's DEFAULT, and the interval of LATENESS.

After Feldera's grammar (docs.feldera.com/sql/grammar, /sql/datetime, /tutorials/time-series). Here a DEFAULT is a
literal, because every engine that reads rows would have to compute an expression alike.
"""

from __future__ import annotations

import math
import re
from decimal import Context, Decimal
from typing import NoReturn

from hybrid.schema.document import shown
from hybrid.schema.jsontext import JsonFloat
from hybrid.schema.sqltext import Cursor, Kind, Token
from hybrid.schema.sqltypes import SqlType
from hybrid.schema.sqlvalues import sql_column

_UNITS_MS = {"DAY": 86_400_000, "HOUR": 3_600_000, "MINUTE": 60_000, "SECOND": 1000}
_UNIT_NAMES = tuple(_UNITS_MS)
_NOT_FIXED = {"YEAR", "QUARTER", "MONTH"}
_CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": None}
_DIGITS = Context(prec=38)  # those of a stored BIG_DECIMAL; Python's own context has 28
_NUMBER_MAX = 400  # characters, and digits before the point
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,3})?")
_MAX_MS = 1000 * 366 * _UNITS_MS["DAY"]
_EXAMPLES = "Write it like INTERVAL 1 HOUR, INTERVAL '30' MINUTES or INTERVAL '1:30' HOUR TO MINUTE."


def read_lateness_ms(cursor: Cursor) -> int:
    """Parse an INTERVAL; its milliseconds. SpecError for anything else, and for an interval without a fixed length."""
    cursor.expect("INTERVAL", "behind LATENESS")
    value = cursor.token
    if value.kind not in (Kind.NUMBER, Kind.STRING):
        cursor.fail(f"{value.shown} is not an interval. {_EXAMPLES}")
    cursor.take()
    first = _unit(cursor)
    last = _unit(cursor) if cursor.skip("TO") else first
    millis = _interval(value.text.strip(), first, last)
    if millis is None or millis > _MAX_MS:
        unit = first if first == last else f"{first} TO {last}"
        cursor.sql.fail(value.start, f"{value.shown} is not an interval of {unit}. {_EXAMPLES}")
    return millis


def read_whole(cursor: Cursor) -> int:
    """Parse a whole number or a product of them, such as `3600 * 24 * 30`. SpecError for anything else."""
    product = 1
    while True:
        token = cursor.token
        if not token.raw.isdigit() or len(token.raw) > 18:
            cursor.fail(f"{token.shown} is not a whole number from 0 on.")
        product *= int(cursor.take().text)
        if not cursor.skip("*"):
            return product


def _unit(cursor: Cursor) -> str:
    word = cursor.token.text.upper()
    unit = word.removesuffix("S")
    if unit in _NOT_FIXED or unit == "WEEK":
        cursor.fail(f"a {unit} has no fixed length in milliseconds. Write DAYS, HOURS, MINUTES or SECONDS.")
    if unit not in _UNITS_MS:
        cursor.fail(f"{cursor.token.shown} is not a unit of time. {_EXAMPLES}")
    cursor.take()
    return unit


def _interval(text: str, first: str, last: str) -> int | None:
    """Milliseconds of `1:30` from HOUR to MINUTE, or `2 3:04:05.5` from DAY to SECOND; None when it does not fit."""
    units = _UNIT_NAMES[_UNIT_NAMES.index(first) : _UNIT_NAMES.index(last) + 1]
    parts = re.split(r"(?<=\d)[ :](?=\d)", text)
    if not units or len(parts) != len(units) or not all(_NUMBER.fullmatch(part) for part in parts):
        return None
    if any("." in part for part in parts[:-1]) or ("." in parts[-1] and last != "SECOND"):
        return None
    return int(sum(Decimal(part) * _UNITS_MS[unit] for part, unit in zip(parts, units, strict=True)))


def read_default(cursor: Cursor, column: str, kind: SqlType) -> object:
    """Parse the literal after DEFAULT; its JSON value, None for NULL. SpecError when it does not fit the type."""
    first = cursor.token
    value = _literal(cursor)
    if cursor.token.kind not in (Kind.END, Kind.WORD) and cursor.token.text not in (",", ")"):
        _no_literal(cursor, first)
    if value is None:
        return None
    if kind.array:
        cursor.sql.fail(first.start, f"the DEFAULT of '{column}': a default of an ARRAY is not built yet.")
    try:
        return _document(value, sql_column(kind.text, kind.data_type).convert(value))
    except (ValueError, ArithmeticError, TypeError, LookupError):
        text = f"the DEFAULT of '{column}', {shown(value)}, does not fit its type"
        cursor.sql.fail(first.start, f"{text}: {sql_column(kind.text, kind.data_type).expected}.")


def _literal(cursor: Cursor) -> str | int | bool | None:
    """The literal as `parse_json` reads JSON: a number with a point is its text."""
    first = cursor.token
    sign = "-" if cursor.skip("-") else ""
    if not sign:
        cursor.skip("+")
    token = cursor.take()
    if token.kind is Kind.NUMBER:
        return _number(cursor, sign, token)
    if first is not token or token.kind not in (Kind.STRING, Kind.WORD):
        _no_literal(cursor, first)
    if token.kind is Kind.STRING:
        return token.text
    word = token.text.upper()
    if word in _CONSTANTS:
        return _CONSTANTS[word]
    if word in ("DATE", "TIME", "TIMESTAMP", "X") and cursor.token.kind is Kind.STRING:
        return cursor.take().text
    _no_literal(cursor, first)


def _number(cursor: Cursor, sign: str, token: Token) -> int | str:
    if len(token.raw) > _NUMBER_MAX or Decimal(token.text).adjusted() > _NUMBER_MAX:
        cursor.sql.fail(token.start, f"{token.shown} is not a number that a column can hold.")
    return int(sign + token.text) if token.text.isdigit() else JsonFloat(sign + token.text)


def _no_literal(cursor: Cursor, first: Token) -> NoReturn:
    message = f"a DEFAULT is a literal here (a number, a string, TRUE, FALSE, NULL, DATE '...'), not {first.shown}."
    if first.text.upper() == "CAST":
        message += " Metadata of a record (CONNECTOR_METADATA) is not built yet."
    cursor.sql.fail(first.start, message)


def _document(value: object, stored: object) -> object:
    """The stored value as JSON that converts to the same stored value. A decimal is text, which keeps its digits."""
    if isinstance(stored, Decimal):
        return int(stored) if stored == int(stored) else str(stored.normalize(_DIGITS))
    if isinstance(stored, float):
        return stored if math.isfinite(stored) else str(value)
    return stored if isinstance(stored, (bool, int, str)) else str(value)
