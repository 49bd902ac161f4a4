"""Parses SQL types of columns in DDL, as in Feldera: their canonical text, and the data type that stores them.

After Feldera's table and grammar of types (docs.feldera.com/sql/types). Feldera refuses FLOAT, too, because its size
differs between dialects.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from hybrid.errors import suggestion
from hybrid.schema.sqltext import Cursor, Kind, SqlText, Token
from hybrid.schema.types import DataType

# The digits of decimal(38,18), in which BIG_DECIMAL is stored.
DIGITS_BEFORE_MAX, DIGITS_BEHIND_MAX = 20, 18
PRECISION_MAX = 38
_LENGTH_MAX = 1_000_000_000

_DATA_TYPES = {
    "BOOLEAN": DataType.BOOLEAN,
    "TINYINT": DataType.INT,
    "SMALLINT": DataType.INT,
    "INTEGER": DataType.INT,
    "BIGINT": DataType.LONG,
    "REAL": DataType.FLOAT,
    "DOUBLE": DataType.DOUBLE,
    "DECIMAL": DataType.BIG_DECIMAL,
    "CHAR": DataType.STRING,
    "VARCHAR": DataType.STRING,
    "DATE": DataType.STRING,
    "TIME": DataType.STRING,
    "TIMESTAMP": DataType.TIMESTAMP,
    "VARBINARY": DataType.BYTES,
    "VARIANT": DataType.JSON,
}
_ALIASES = {
    "BOOL": "BOOLEAN", "INT2": "SMALLINT", "INT": "INTEGER", "SIGNED": "INTEGER", "INT4": "INTEGER",
    "INT8": "BIGINT", "INT64": "BIGINT", "DEC": "DECIMAL", "NUMERIC": "DECIMAL", "NUMBER": "DECIMAL",
    "FLOAT4": "REAL", "FLOAT32": "REAL", "FLOAT8": "DOUBLE", "FLOAT64": "DOUBLE", "CHARACTER": "CHAR",
    "STRING": "VARCHAR", "TEXT": "VARCHAR", "BYTEA": "VARBINARY", "BINARY": "VARBINARY", "DATETIME": "TIMESTAMP",
}  # fmt: skip
# Types of Feldera that are not supported.
_REFUSED = {
    "FLOAT": "has another size in every dialect. Write REAL or DOUBLE",
    "UUID": "is not built yet. Write CHAR(36) or VARCHAR",
    "UNSIGNED": "is not built yet. Write the next wider type, such as BIGINT",
    "MAP": "is not built yet. Write VARIANT",
    "ROW": "is not built yet. Write VARIANT",
    "GEOMETRY": "is not built yet. Write VARCHAR",
    "INTERVAL": "is no type of a column. Write BIGINT",
    "NULL": "is no type of a column",
}
_LENGTHS = {"CHAR", "CHARACTER", "VARCHAR", "BINARY", "VARBINARY"}


@dataclass(frozen=True)
class SqlType:
    """A column's type. `length` counts characters (CHAR, VARCHAR; None: unlimited) or a DECIMAL's digits.

    `scale` counts the digits of a DECIMAL after the point. `array`: the column holds several values.
    """

    name: str
    length: int | None = None
    scale: int | None = None
    array: bool = False

    @property
    def text(self) -> str:
        """The canonical text: `DECIMAL(15,2)`, `VARCHAR(44)`, `BIGINT ARRAY`."""
        size = (
            "" if self.length is None else f"({self.length})" if self.scale is None else f"({self.length},{self.scale})"
        )
        return f"{self.name}{size}{' ARRAY' if self.array else ''}"

    @property
    def data_type(self) -> DataType:
        """The data type that stores one value."""
        return _DATA_TYPES[self.name]


@cache
def parse_sql_type(text: str, source: str) -> SqlType:
    """The type that `text` names, canonical or not. SpecError at `source` for anything else."""
    cursor = Cursor(SqlText(text, source))
    sql_type = read_type(cursor, [])
    if not cursor.is_done():
        cursor.fail(f"{cursor.token.shown} does not belong to a type.")
    return sql_type


def read_type(cursor: Cursor, warnings: list[str]) -> SqlType:
    """Parse a type; adds to `warnings` where its size is not enforced. SpecError at a word that is no type."""
    first = cursor.token
    name = _name(cursor)
    length, scale = _size(cursor, first, name)
    if cursor.at("UNSIGNED"):
        cursor.fail(f"UNSIGNED {_REFUSED['UNSIGNED']}.")
    array = cursor.skip("ARRAY")
    if cursor.at("ARRAY"):
        cursor.fail("an ARRAY of ARRAYs is not built yet. Write VARIANT.")
    warnings += [cursor.warning(first, text) for text in _not_kept(first.text.upper(), name, length, scale)]
    return SqlType(name, None if name == "VARBINARY" else length, scale, array)


def _name(cursor: Cursor) -> str:
    token = cursor.token
    word = token.text.upper() if token.kind is Kind.WORD else ""
    if word in _REFUSED:
        cursor.fail(f"the type {word} {_REFUSED[word]}.")
    name = _ALIASES.get(word, word)
    if name not in _DATA_TYPES:
        near = suggestion(word, {*_DATA_TYPES, *_ALIASES})
        cursor.fail(f"{token.shown} is not a type.{near} Types are: {', '.join(_DATA_TYPES)}; each may be an ARRAY.")
    cursor.take()
    if word in ("CHAR", "CHARACTER", "BINARY") and cursor.skip("VARYING"):
        name = "VARBINARY" if word == "BINARY" else "VARCHAR"
    if word == "DOUBLE":
        cursor.skip("PRECISION")
    if name == "TIMESTAMP" and not cursor.skip("WITHOUT", "TIME", "ZONE"):
        cursor.skip("WITH", "TIME", "ZONE")  # an instant; so is every TIMESTAMP here, in UTC
    return name


def _size(cursor: Cursor, first: Token, name: str) -> tuple[int | None, int | None]:
    word = first.text.upper()
    if name == "DECIMAL":
        return _decimal(cursor)
    if not cursor.at("("):
        return (1 if name == "CHAR" else None), None
    if word not in _LENGTHS:
        cursor.fail(f"the type {word} takes no size. Write it without {_rest(cursor)}.")
    cursor.take()
    length = _whole(cursor, 1, _LENGTH_MAX)
    cursor.expect(")", f"behind {word}({length}")
    return length, None


def _decimal(cursor: Cursor) -> tuple[int, int]:
    precision, scale = PRECISION_MAX, 0
    if cursor.skip("("):
        precision = _whole(cursor, 1, PRECISION_MAX)
        if cursor.skip(","):
            scale = _whole(cursor, 0, precision)
        cursor.expect(")", "behind the digits of DECIMAL")
    return precision, scale


def _whole(cursor: Cursor, low: int, high: int) -> int:
    token = cursor.token
    if not token.text.isdigit() or len(token.text) > 10 or not low <= int(token.text) <= high:
        cursor.fail(f"{token.shown} is not a size from {low} to {high}.")
    cursor.take()
    return int(token.text)


def _rest(cursor: Cursor) -> str:
    return "".join(cursor.ahead(count).raw for count in range(3))


def _not_kept(word: str, name: str, length: int | None, scale: int | None) -> list[str]:
    if name == "VARBINARY" and length is not None:
        return [f"the length of {word}({length}) is not checked: bytes are kept as they arrive."]
    if name != "DECIMAL" or length is None or scale is None:
        return []
    if scale <= DIGITS_BEHIND_MAX and length - scale <= DIGITS_BEFORE_MAX:
        return []
    most = f"{DIGITS_BEFORE_MAX} digits before and {DIGITS_BEHIND_MAX} behind the point"
    return [f"DECIMAL({length},{scale}) holds at most {most}: rows with longer values are rejected."]
