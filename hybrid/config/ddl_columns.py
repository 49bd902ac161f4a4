"""The columns of a CREATE TABLE: names, types, keys, defaults, lateness. After Feldera's `tableElement`.

A clause without effect gives a warning: a foreign key, which Feldera does not check either, WATERMARK and INTERNED. A
clause that cannot be honoured is an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import NoReturn

from hybrid.errors import Gathered
from hybrid.schema.sqlliterals import read_default, read_lateness_ms, read_whole
from hybrid.schema.sqltext import Cursor, Kind, Token
from hybrid.schema.sqltypes import SqlType, read_type
from hybrid.schema.types import DataType

# Delta and Parquet refuse these in names of columns; '_hy_' and '$' are the system's own.
_BAD_NAME = re.compile(r"[ ,;{}()`\n\t=\x00-\x1f]|^\$|^_hy_", re.IGNORECASE)
_REFUSED = {
    "CHECK": "rows are not checked by conditions. Remove it",
    "UNIQUE": "is not kept. Write PRIMARY KEY",
    "GENERATED": "computed columns are not built yet",
    "AUTO_INCREMENT": "numbers are not made here",
    "COLLATE": "texts are compared by their bytes. Remove it",
    "REFERENCES": "write FOREIGN KEY REFERENCES",
    "COMMENT": "write it as an SQL comment, -- ...",
    "CONSTRAINT": "constraints have no names here. Remove CONSTRAINT and its name",
}


@dataclass(frozen=True)
class Column:
    """A column. `default` holds the DEFAULT as JSON in a tuple of one; an empty tuple: no DEFAULT.

    `lateness` is the LATENESS, in milliseconds (`lateness_unit` "ms") or in units of a numeric column ("column").
    """

    name: str
    type: SqlType
    start: int
    not_null: bool = False
    is_null: bool = False
    default: tuple[object, ...] = ()
    lateness: int | None = None
    lateness_unit: str = "ms"


@dataclass
class Elements:
    """The elements between the parentheses of a CREATE TABLE. `key_start` is the offset of PRIMARY KEY in the text."""

    columns: list[Column] = field(default_factory=list)
    key: tuple[str, ...] = ()
    key_start: int = 0
    warnings: list[str] = field(default_factory=list)

    def find(self, name: str) -> Column | None:
        """The column of that name, in any case; None when there is none."""
        return next((column for column in self.columns if column.name.lower() == name.lower()), None)

    @property
    def names(self) -> str:
        """All column names, for a message."""
        return ", ".join(column.name for column in self.columns)


def read_elements(cursor: Cursor, table: str) -> Elements:
    """Parse the parentheses after the name of a table. SpecError for a clause that cannot be honoured."""
    cursor.expect("(", f"behind CREATE TABLE {table}")
    elements, errors = Elements(), Gathered()
    while True:
        place, known = cursor.place, len(errors)
        with errors:
            if not _constraint(cursor, elements):
                _column(cursor, elements)
        if len(errors) > known:
            cursor.leave(place, ",", ")", ";")
        if not cursor.skip(","):
            break
    errors.raise_all()
    cursor.expect(")", "or ',' behind a column")
    if not elements.columns:
        cursor.fail(f"the table '{table}' has no column.")
    _settle_key(cursor, elements)
    return elements


def _constraint(cursor: Cursor, found: Elements) -> bool:
    """Parse a table constraint, if it is next; whether it was."""
    token = cursor.token
    if cursor.skip("PRIMARY", "KEY"):
        _set_key(cursor, found, token, _names(cursor, "PRIMARY KEY"))
        return True
    if cursor.skip("FOREIGN", "KEY"):
        _names(cursor, "FOREIGN KEY")
        _foreign(cursor, found, token)
        return True
    if (cursor.at("CHECK") or cursor.at("UNIQUE")) and cursor.ahead(1).text == "(":
        _refuse(cursor)
    if cursor.at("CONSTRAINT") and cursor.ahead(2).text.upper() in ("PRIMARY", "FOREIGN", "CHECK", "UNIQUE"):
        _refuse(cursor)
    return False


def _column(cursor: Cursor, found: Elements) -> None:
    token = cursor.name("a column")
    _check_name(cursor, found, token)
    if cursor.token.kind is not Kind.WORD:
        cursor.fail(f"the column '{token.text}' has no type; here is {cursor.token.shown}.")
    column = Column(token.text, read_type(cursor, found.warnings), token.start)
    while not (cursor.at(",") or cursor.at(")")):
        column = _attribute(cursor, found, column)
    found.columns.append(column)


def _attribute(cursor: Cursor, found: Elements, column: Column) -> Column:
    """Parse an attribute of a column; the column with it."""
    token = cursor.token
    if cursor.skip("NOT", "NULL"):
        return replace(column, not_null=True)
    if cursor.skip("NULL"):
        return replace(column, is_null=True)
    if cursor.skip("PRIMARY", "KEY"):
        _set_key(cursor, found, token, (column.name,))
    elif cursor.skip("FOREIGN", "KEY"):
        _foreign(cursor, found, token)
    elif cursor.skip("DEFAULT"):
        return _default(cursor, token, column)
    elif cursor.skip("LATENESS"):
        return _lateness(cursor, column)
    elif cursor.skip("WATERMARK"):
        _lateness(cursor, column)
        found.warnings.append(cursor.warning(token, "WATERMARK has no effect: a row is seen as soon as it arrives."))
    elif cursor.skip("INTERNED"):
        found.warnings.append(cursor.warning(token, "INTERNED has no effect."))
    else:
        _refuse(cursor)
    return column


def _default(cursor: Cursor, token: Token, column: Column) -> Column:
    value = read_default(cursor, column.name, column.type)
    if value is None and column.not_null:
        cursor.sql.fail(token.start, f"DEFAULT NULL does not fit '{column.name}', which is NOT NULL.")
    return column if value is None else replace(column, default=(value,))


def _lateness(cursor: Cursor, column: Column) -> Column:
    if cursor.at("INTERVAL"):
        return replace(column, lateness=read_lateness_ms(cursor), lateness_unit="ms")
    if column.type.data_type not in (DataType.INT, DataType.LONG):
        cursor.fail(
            f"{cursor.token.shown} is not the lateness of '{column.name}', which is {column.type.text}: "
            "write it like INTERVAL 1 HOUR."
        )
    return replace(column, lateness=read_whole(cursor), lateness_unit="column")


def _foreign(cursor: Cursor, found: Elements, token: Token) -> None:
    cursor.expect("REFERENCES", "behind FOREIGN KEY")
    other = cursor.name("a table")
    _names(cursor, f"REFERENCES {other.text}")
    found.warnings.append(cursor.warning(token, f"the FOREIGN KEY to '{other.text}' is not checked."))


def _names(cursor: Cursor, where: str) -> tuple[str, ...]:
    cursor.expect("(", f"behind {where}")
    names = [cursor.name("a column").text]
    while cursor.skip(","):
        names.append(cursor.name("a column").text)
    cursor.expect(")", f"behind the columns of {where}")
    return tuple(names)


def _set_key(cursor: Cursor, found: Elements, token: Token, names: tuple[str, ...]) -> None:
    if found.key:
        message = "a second PRIMARY KEY: a table has one. Name all its columns in one place, PRIMARY KEY (a, b)."
        cursor.sql.fail(token.start, message)
    found.key, found.key_start = names, token.start


def _settle_key(cursor: Cursor, found: Elements) -> None:
    """Write the key with the columns' own names, and make key columns NOT NULL."""
    columns = [_key_column(cursor, found, name) for name in found.key]
    found.key = tuple(column.name for column in columns)
    found.columns = [replace(column, not_null=True) if column.name in found.key else column for column in found.columns]
    both = next((column for column in found.columns if column.not_null and column.is_null), None)
    if both is not None:
        why = "is part of the primary key" if both.name in found.key else "is NOT NULL"
        cursor.sql.fail(both.start, f"the column '{both.name}' cannot be NULL: it {why}.")


def _key_column(cursor: Cursor, found: Elements, name: str) -> Column:
    column = found.find(name)
    if column is None:
        cursor.sql.fail(found.key_start, f"the key column '{name}' is not a column. Columns are: {found.names}.")
    if found.key.count(name) > 1:
        cursor.sql.fail(found.key_start, f"'{name}' is given twice in the primary key.")
    if column.type.array or column.type.name == "VARIANT":
        cursor.sql.fail(found.key_start, f"'{name}' is {column.type.text} and cannot be part of a primary key.")
    return column


def _check_name(cursor: Cursor, found: Elements, token: Token) -> None:
    name = token.text
    if _BAD_NAME.search(name) or len(name) > 200:
        message = "names begin neither with '_hy_' nor '$', hold no space, none of ',;{}()=`', and 200 characters"
        cursor.sql.fail(token.start, f"{token.shown} is no name of a column: {message}.")
    twin = found.find(name)
    if twin is not None:
        how = "" if twin.name == name else f" (as '{twin.name}': case does not count)"
        cursor.sql.fail(token.start, f"the column '{name}' is given twice in the table{how}. Remove one.")


def _refuse(cursor: Cursor) -> NoReturn:
    word = cursor.token.text.upper()
    if word in _REFUSED:
        cursor.fail(f"{word} cannot be honoured: {_REFUSED[word]}.")
    cursor.fail(f"{cursor.token.shown} is not understood here: a column ends with ',' or ')'.")
