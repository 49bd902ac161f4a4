"""Columns as texts are the texts that the command line prints, value by value."""

from __future__ import annotations

import json
import math
import random
import struct
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hybrid.cli.cells import csv_cell, text
from hybrid.files.results.markdown_cells import markdown_cell
from hybrid.files.results.text_columns import csv_texts, joined_lines, json_texts, markdown_texts, plain_texts
from hybrid.query.types import _plain_decimal
from hybrid.runtime.json_values import json_value
from hybrid.schema.values import shortest_float

DICE = random.Random(7)
TEXTS = [
    "", "a", " a", "a ", "\ta", "a,b", 'a"b', "a\nb", "a\r\nb", "\ufeffa", "a\ufeff", "|", "a|b", "\x1b[31m", "\x00",
    "日本", "\u202eevil", "\\", "\x7f", "\x85", "null", "'", "a\u2028b", "a\tb", "a b",
]  # fmt: skip
DOUBLES = [
    0.0, -0.0, 1.0, -1.0, 0.1, 1 / 3, 1e15, 1e16, 1e17, 123456789012345.6, 9999999999999998.0, 1e-4, 9.9e-5, 1e-5,
    5e-324, 1.7976931348623157e308, math.inf, -math.inf, math.nan, 100.0, 1e22, 1e21, 2.0**53,
    *(DICE.uniform(-1e6, 1e6) for _ in range(200)), *(10 ** DICE.uniform(-320, 308) for _ in range(200)),
]  # fmt: skip
FLOATS = [
    shortest_float(struct.unpack("<f", struct.pack("<f", value))[0])
    for value in (
        *(value for value in DOUBLES if not math.isfinite(value) or abs(value) < 3e38),
        *(struct.unpack("<f", struct.pack("<I", DICE.getrandbits(32)))[0] for _ in range(500)),
    )
]
TIMES = [
    datetime(1, 1, 1), datetime(999, 12, 31, 23, 59, 59, 999999), datetime(1969, 12, 31, 23, 59, 59, 1),
    datetime(2021, 9, 24, 6, 2, 31), datetime(2021, 9, 24, 6, 2, 31, 120000), datetime(2021, 9, 24, 6, 2, 31, 123000),
    datetime(2021, 9, 24, 6, 2, 31, 100), datetime(9999, 12, 31, 23, 59, 59, 999999),
    *(datetime(1970, 1, 1) + timedelta(microseconds=DICE.randrange(-(10**15), 10**15)) for _ in range(50)),
]  # fmt: skip
DECIMALS = [
    _plain_decimal(Decimal(one))
    for one in (
        "0", "1", "-1", "10", "100", "12.5", "-0.000000000000000001", "12345678901234567890.123456789012345678",
        "0.1", "0.0000001", "-99999999999999999999", "1000000",
    )
]  # fmt: skip
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int32(), [0, -1, 2**31 - 1, -(2**31)]),
    "long": (pa.int64(), [2**63 - 1, -(2**63), 2**53 + 1]),
    "boolean": (pa.bool_(), [True, False]),
    "float": (pa.float32(), FLOATS),
    "double": (pa.float64(), DOUBLES),
    "decimal": (pa.decimal128(38, 18), DECIMALS),
    "whole decimal": (pa.decimal128(38, 0), [Decimal(0), Decimal(100), Decimal("9" * 38), Decimal(-10)]),
    "text": (pa.string(), TEXTS),
    "time": (pa.timestamp("us"), TIMES),
    "bytes": (pa.binary(), [b"", b"\x00\xff", b"a,b"]),
    "texts": (pa.list_(pa.string()), [[], TEXTS, [None, "a"]]),
    "floats": (pa.list_(pa.float32()), [FLOATS[:20], [None]]),
    "times": (pa.list_(pa.timestamp("us")), [TIMES, []]),
    "longs": (pa.list_(pa.int64()), [[2**63 - 1, None, -1]]),
    "booleans": (pa.list_(pa.bool_()), [[True, None, False]]),
    "many bytes": (pa.list_(pa.binary()), [[b"\x01", None]]),
    "nothing": (pa.string(), []),
}


def column(name: str) -> tuple[pa.Array, list[Any]]:
    kind, values = COLUMNS[name]
    return pa.array([*values, None], kind), [*values, None]


@pytest.mark.parametrize("name", COLUMNS)
def test_texts_are_those_of_the_command_line(name: str) -> None:
    array, values = column(name)
    assert plain_texts(array).to_pylist() == [None if value is None else text(value) for value in values]


@pytest.mark.parametrize("name", COLUMNS)
def test_cells_of_csv(name: str) -> None:
    array, values = column(name)
    cells = [cell or "" for cell in csv_texts(array).to_pylist()]
    assert cells == [csv_cell(value) for value in values]


@pytest.mark.parametrize("name", COLUMNS)
def test_values_of_json(name: str) -> None:
    array, values = column(name)
    written = [made or "null" for made in json_texts(array).to_pylist()]
    assert written == [json.dumps(json_value(value), ensure_ascii=False) for value in values]


@pytest.mark.parametrize("name", COLUMNS)
def test_cells_of_markdown(name: str) -> None:
    array, values = column(name)
    assert markdown_texts(array).to_pylist() == [
        None if value is None else markdown_cell(text(value)) for value in values
    ]


def test_a_cell_of_markdown_is_one_line_without_bars_and_controls() -> None:
    assert markdown_cell("a|b\r\nc\nd\te\x1b[31m\u202e\x85") == "a\\|b<br>c<br>d e\\x1b[31m\\u202e\\x85"


def test_slices_of_columns() -> None:
    """Arrays that begin in the middle of their buffers are written from there."""
    array = pa.array(["a", "b", None, "d"]).slice(1, 2)
    assert bytes(joined_lines([csv_texts(array), "\n"], "")) == b"b\n\n"
    assert bytes(joined_lines([array.slice(0, 0), "\n"], "")) == b""
