"""TPC-H rows of LINEITEM, made from a seed: as a Delta table, and as messages."""

from __future__ import annotations

import json
import random
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

INTEGERS = ("L_ORDERKEY", "L_PARTKEY", "L_SUPPKEY", "L_LINENUMBER")
DECIMALS = ("L_QUANTITY", "L_EXTENDEDPRICE", "L_DISCOUNT", "L_TAX")
DATES = ("L_SHIPDATE", "L_COMMITDATE", "L_RECEIPTDATE")
SCHEMA = pa.schema(
    [
        *((name, pa.int32()) for name in INTEGERS),
        *((name, pa.decimal128(15, 2)) for name in DECIMALS),
        ("L_RETURNFLAG", pa.string()),
        ("L_LINESTATUS", pa.string()),
        *((name, pa.date32()) for name in DATES),
        ("L_SHIPINSTRUCT", pa.string()),
        ("L_SHIPMODE", pa.string()),
        ("L_COMMENT", pa.string()),
    ]
)
Row = dict[str, Any]


def lineitems(count: int, first: int = 0) -> list[Row]:
    """Rows number `first` to `first + count`; the same number is the same row."""
    return [_row(number) for number in range(first, first + count)]


def _row(number: int) -> Row:
    chance = random.Random(number)
    shipped = date(1992, 1, 2) + timedelta(days=chance.randint(0, 2500))
    return {
        "L_ORDERKEY": number // 4 + 1,
        "L_PARTKEY": chance.randint(1, 200_000),
        "L_SUPPKEY": chance.randint(1, 10_000),
        "L_LINENUMBER": number % 4 + 1,
        "L_QUANTITY": Decimal(chance.randint(1, 50)).scaleb(0),
        "L_EXTENDEDPRICE": Decimal(chance.randint(90_000, 10_000_000)).scaleb(-2),
        "L_DISCOUNT": Decimal(chance.randint(0, 10)).scaleb(-2),
        "L_TAX": Decimal(chance.randint(0, 8)).scaleb(-2),
        "L_RETURNFLAG": chance.choice("ANR"),
        "L_LINESTATUS": chance.choice("OF"),
        "L_SHIPDATE": shipped,
        "L_COMMITDATE": shipped + timedelta(days=30),
        "L_RECEIPTDATE": shipped + timedelta(days=9),
        "L_SHIPINSTRUCT": chance.choice(["DELIVER IN PERSON", "NONE", "COLLECT COD"]).ljust(25),
        "L_SHIPMODE": chance.choice(["AIR", "RAIL", "SHIP", "TRUCK"]).ljust(10),
        "L_COMMENT": f"row {number}",
    }


def write_history(path: Path, rows: list[Row], files: int, **more: list[Any]) -> None:
    """The rows as a Delta table of that many files; `more` are further columns."""
    names = list(more)
    schema = SCHEMA
    for name in names:
        schema = schema.append(pa.field(name, pa.array(more[name]).type))
    each = -(-len(rows) // files)
    for first in range(0, len(rows), each):
        part = [
            {**row, **{name: more[name][first + at] for name in names}}
            for at, row in enumerate(rows[first : first + each])
        ]
        write_deltalake(str(path), pa.Table.from_pylist(part, schema), mode="append")


def message(verb: str, row: Row) -> bytes:
    """A row as Feldera's insert_delete writes it."""
    return json.dumps({verb: {name: _plain(value) for name, value in row.items()}}).encode()


def _plain(value: object) -> object:
    return str(value) if isinstance(value, (Decimal, date)) else value


def comments(rows: list[Row]) -> list[str]:
    """What tells rows apart."""
    return sorted(row["L_COMMENT"] for row in rows)
