"""Arrow columns as texts, for the formats that are text: a whole column at a time, so that millions of rows are fast.

The texts are those of `hybrid.runtime.json_values`: FLOAT and DOUBLE are the shortest decimal that gives the same
number again, BIG_DECIMAL has no zeros at its end, times are ISO 8601 in UTC, BYTES are hexadecimal, several values are
a JSON array.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hybrid.files.results.markdown_cells import markdown_cell
from hybrid.runtime.json_values import json_value
from hybrid.schema.values import shortest_float

_DIGITS = Context(prec=76)
# Python writes these with an exponent, or as words; Arrow has other bounds.
_EXPONENT_FROM, _EXPONENT_BELOW = 1e16, 1e-4
_JSON_ESCAPED = r'[\x00-\x1f"\\]'
# A cell in quotes: separators and quotes, blanks and a byte order mark at its ends, which readers trim, and "".
_CSV_QUOTED = r'[,"\r\n]|^[ \t\x{FEFF}]|[ \t\x{FEFF}]$|^$'
_MARKDOWN_ESCAPED = r"[|\x00-\x1f\x7f-\x{9F}\x{061C}\x{200E}\x{200F}\x{2028}-\x{202E}\x{2066}-\x{2069}]"


def plain_texts(column: pa.Array) -> pa.Array:
    """The texts of a column; nulls stay null."""
    kind = column.type
    if pa.types.is_string(kind):
        return column
    if pa.types.is_floating(kind):
        return _float_texts(column)
    if pa.types.is_decimal(kind):
        return _decimal_texts(column)
    if pa.types.is_timestamp(kind):
        return _time_texts(column)
    if pa.types.is_binary(kind):
        return _by_value(column, bytes.hex)
    if pa.types.is_list(kind):
        return _list_texts(column)
    return column.cast(pa.string())  # integers, booleans, and a column of nulls only


def csv_texts(column: pa.Array) -> pa.Array:
    """The cells of a CSV column, in quotes where they need them."""
    texts, kind = plain_texts(column), column.type
    if not (pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_list(kind)):
        return texts
    needs_quotes = pc.match_substring_regex(texts, _CSV_QUOTED)
    if not pc.any(needs_quotes).as_py():
        return texts
    quoted = pc.binary_join_element_wise('"', pc.replace_substring(texts, '"', '""'), '"', "")
    return pc.if_else(needs_quotes, quoted, texts)


def json_texts(column: pa.Array) -> pa.Array:
    """The values of a JSON column; nulls stay null."""
    texts, kind = plain_texts(column), column.type
    if pa.types.is_string(kind):
        quoted = pc.binary_join_element_wise('"', texts, '"', "")
        return _replaced(quoted, pc.match_substring_regex(texts, _JSON_ESCAPED), texts, _json_string)
    if pa.types.is_floating(kind):  # JSON has no number for these
        is_number = pc.is_finite(column)
        return pc.if_else(is_number, texts, pc.binary_join_element_wise('"', texts, '"', ""))
    if pa.types.is_decimal(kind) or pa.types.is_timestamp(kind) or pa.types.is_binary(kind):
        return pc.binary_join_element_wise('"', texts, '"', "")
    return texts


def markdown_texts(column: pa.Array) -> pa.Array:
    """The cells of a Markdown column."""
    texts = plain_texts(column)
    return _replaced(texts, pc.match_substring_regex(texts, _MARKDOWN_ESCAPED), texts, markdown_cell)


def joined_lines(parts: Sequence[pa.Array | str], null: str) -> memoryview:
    """The bytes of the rows: each is its `parts` put together, with `null` for a null."""
    lines = pc.binary_join_element_wise(*parts, "", null_handling="replace", null_replacement=null)
    _, offsets, data = lines.buffers()
    ends = np.frombuffer(offsets, np.int32, count=lines.offset + len(lines) + 1)
    return memoryview(data)[int(ends[lines.offset]) : int(ends[-1])] if data is not None else memoryview(b"")


def _float_texts(column: pa.Array) -> pa.Array:
    texts = column.cast(pa.string())
    texts = pc.if_else(
        pc.match_substring_regex(texts, "^-?[0-9]+$"), pc.binary_join_element_wise(texts, ".0", ""), texts
    )
    size = pc.abs(column)
    is_special = pc.or_(
        pc.or_(pc.greater_equal(size, _EXPONENT_FROM), pc.and_(pc.less(size, _EXPONENT_BELOW), pc.not_equal(size, 0))),
        pc.match_substring_regex(texts, "[a-z]"),
    )
    shorten = shortest_float if pa.types.is_float32(column.type) else float
    return _replaced(texts, is_special, column, lambda value: str(json_value(shorten(value))))


def _decimal_texts(column: pa.Array) -> pa.Array:
    texts = column.cast(pa.string())
    if column.type.scale > 0:
        has_exponent = pc.match_substring(texts, "E")
        short = pc.replace_substring_regex(texts, r"\.?0+$", "")
        return _replaced(short, has_exponent, column, _plain_decimal)
    return texts


def _time_texts(column: pa.Array) -> pa.Array:
    texts = column.cast(pa.timestamp("us")).cast(pa.string())
    texts = pc.replace_substring(texts, " ", "T", max_replacements=1)
    texts = pc.replace_substring_regex(texts, r"\.000000$", "")
    texts = pc.replace_substring_regex(texts, r"(\.[0-9]{3})000$", r"\1")
    return pc.binary_join_element_wise(texts, "Z", "")


def _list_texts(column: pa.Array) -> pa.Array:
    element = column.type.value_type
    if pa.types.is_float32(element):
        return _by_value(column, lambda values: _json([_shortest(value) for value in values]))
    if pa.types.is_decimal(element):
        return _by_value(
            column, lambda values: _json([None if value is None else _plain_decimal(value) for value in values])
        )
    return _by_value(column, _json)


def _shortest(value: float | None) -> float | None:
    return None if value is None else shortest_float(value)


def _plain_decimal(value: Decimal) -> str:
    return format(value.normalize(_DIGITS), "f") if value else "0"


def _json(value: object) -> str:
    return json.dumps(json_value(value), ensure_ascii=False)


def _json_string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _by_value(column: pa.Array, convert: Callable[[Any], str]) -> pa.Array:
    values = (None if value is None else convert(value) for value in column.to_pylist())
    return pa.array(values, pa.string(), size=len(column))


def _replaced(texts: pa.Array, where: pa.Array, values: pa.Array, convert: Callable[[Any], str]) -> pa.Array:
    """The texts, of which those `where` it is true are made from `values` one by one: few rows need it."""
    where = pc.fill_null(where, False)
    if not pc.any(where).as_py():
        return texts
    made = pa.array([convert(value) for value in values.filter(where).to_pylist()], pa.string())
    return pc.replace_with_mask(texts, where, made)
