"""A table with a column of every type, and values for its rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import Any

from hybrid.config.table_config import TableSpec
from tests.records.test_decode import EVERY_TYPE, table

NOON = datetime(2021, 9, 24, 12, 0, 0, 123456, tzinfo=UTC)


def every_type(**changes: Any) -> TableSpec:
    return replace(table(EVERY_TYPE, many=("m",), key=("s", "i")), **changes)


def values(number: int, **others: object) -> list[object]:
    """Of one row, in the order of the columns; `others` in the place of what it would have."""
    known = {
        "i": number, "l": 2**60, "f": 0.5, "d": 0.1, "n": Decimal("1.5"), "b": True, "t": NOON, "s": f"é{number}",
        "j": '{"a":1}', "x": b"\x00\xff", "m": ["x", None], "ts": number, **others,
    }  # fmt: skip
    return [known[name] for name in _names()]


@cache
def _names() -> tuple[str, ...]:
    return every_type().schema.column_names
