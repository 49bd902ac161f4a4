"""What a datagen makes of the numbers of rows: Feldera's examples, every strategy on every type, what is refused."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from hybrid.config.datagen_values import record_maker
from hybrid.config.ddl import parse_ddl
from hybrid.config.dice import Dice, key_of
from hybrid.config.table_config import Half, TableSpec
from hybrid.config.table_json import parse_table
from hybrid.errors import SpecError
from hybrid.records.decode import Decoder
from hybrid.records.outcome import Decoded
from tests.config.connector_docs import connector, read_datagen

TYPES = (
    "tiny TINYINT, n INTEGER, id BIGINT, price DECIMAL(15,2), f REAL, d DOUBLE, ok BOOLEAN, code CHAR(3), "
    "name VARCHAR, day DATE, at TIME, raw VARBINARY, ts TIMESTAMP, doc VARIANT, many INTEGER ARRAY"
)


def table(columns: str = TYPES, **config: Any) -> TableSpec:
    text = json.dumps([connector("datagen", config)]).replace("'", "''")
    (found,) = parse_ddl(f"CREATE TABLE t ({columns}) WITH ('connectors' = '{text}');", "t.sql")
    return parse_table(found.schema_doc, "t.sql", [(config, "t.sql") for config in found.configs])


def rows(count: int, columns: str = TYPES, seed: int = 1, **fields: Any) -> list[dict[str, Any]]:
    """The rows of a plan, as the decoder takes them."""
    plan = {"limit": count, "fields": fields}
    spec = table(columns, plan=[plan])
    make = record_maker(spec.schema.fields, read_datagen(plan=[plan]).plans[0], seed, 0, any_case=True)
    decoder, found = Decoder(spec, Half.OFFLINE), []
    for number in range(count):
        row = decoder.convert(make(number))
        assert isinstance(row, Decoded), row
        found.append(dict(zip(spec.schema.column_names, row.values, strict=True)))
    return found


def values(count: int, kind: str, **field: Any) -> list[Any]:
    return [row["a"] for row in rows(count, f"a {kind}", a=field)]


def fails(kind: str, **field: Any) -> str:
    with pytest.raises(SpecError) as caught:
        table(f"a {kind}", plan=[{"limit": 1, "fields": {"a": field}}])
    return str(caught.value)


def test_without_fields_every_type_is_incremented() -> None:
    third = rows(4)[3]
    assert third == {
        "tiny": 3, "n": 3, "id": 3, "price": 3, "f": 3.0, "d": 3.0, "ok": True, "code": "3", "name": "3",
        "day": "1970-01-04", "at": "00:00:00.003000", "raw": b"\x03\x03\x03",
        "ts": datetime(1970, 1, 1, 0, 0, 0, 3000, tzinfo=UTC), "doc": "3", "many": [3, 3, 3],
    }  # fmt: skip


def test_the_examples_of_feldera() -> None:
    assert values(5, "VARCHAR", values=["AAPL", "GOOGL", "SPY", "NVDA"]) == ["AAPL", "GOOGL", "SPY", "NVDA", "AAPL"]
    prices = values(50, "DECIMAL(38, 2)", strategy="uniform", range=[100, 10000])
    assert all(100 <= price < 10000 and price % Decimal("0.01") == 0 for price in prices) and len(set(prices)) > 40
    lists = values(6, "VARBINARY", range=[0, 5], value={"strategy": "uniform", "range": [128, 256]})
    assert [len(one) for one in lists] == [0, 1, 2, 3, 4, 0] and all(byte >= 128 for one in lists for byte in one)
    assert len(set(b"".join(lists))) > 3
    times = {"range": ["2024-08-28T00:00:00Z", "2024-08-28T00:00:02Z"], "scale": 1000}
    assert [one.second for one in values(3, "TIMESTAMP", **times)] == [0, 1, 0]
    assert values(3, "DATE", range=["2024-08-28", "2024-08-30"]) == ["2024-08-28", "2024-08-29", "2024-08-28"]
    assert values(3, "TIME", range=["00:00:05", "00:00:07"], scale=1000) == ["00:00:05", "00:00:06", "00:00:05"]
    assert values(10, "BIGINT", range=[10, 20], scale=3) == [10, 13, 16, 19, 12, 15, 18, 11, 14, 17]


@pytest.mark.parametrize("strategy", ["increment", "uniform", "zipf"])
def test_every_strategy_on_every_type_gives_rows(strategy: str) -> None:
    names = [column.split()[0] for column in TYPES.split(", ")]
    found = rows(60, **{name: {"strategy": strategy} for name in names})
    assert len({repr(row) for row in found}) > 50


def test_increments_wrap_around_at_the_end_of_the_type() -> None:
    assert values(130, "TINYINT")[126:] == [126, 127, 0, 1]


def test_the_same_seed_gives_the_same_rows_and_another_one_others() -> None:
    fields = {"id": {"strategy": "uniform"}, "name": {"strategy": "zipf"}}
    assert rows(20, seed=7, **fields) == rows(20, seed=7, **fields)
    assert rows(20, seed=7, **fields) != rows(20, seed=8, **fields)
    assert rows(20, **fields) == rows(30, **fields)[:20]


def test_ranges_of_random_values() -> None:
    assert set(values(100, "INTEGER", strategy="uniform", range=[-2, 2])) == {-2, -1, 0, 1}
    assert set(values(100, "INTEGER", strategy="uniform", range=[0, 3], scale=10)) == {0, 10, 20}
    assert all(-1 <= one < 1 for one in values(100, "DOUBLE", strategy="uniform", range=[-1, 1]))
    assert {len(one) for one in values(100, "VARCHAR", strategy="uniform", range=[2, 4])} == {2, 3}
    assert {len(one) for one in values(100, "VARCHAR(2)", strategy="uniform")} == {0, 1, 2}
    assert set(values(100, "BOOLEAN", strategy="uniform")) == {True, False}
    days = values(100, "DATE", strategy="uniform", range=[0, 2])
    assert set(days) == {"1970-01-01", "1970-01-02"}


def test_zipf_prefers_the_first() -> None:
    found = Counter(values(2000, "VARCHAR", strategy="zipf", values=["a", "b", "c"], e=1))
    assert found["a"] > 1.5 * found["b"] > 1.5 * found["c"] > 100
    even = Counter(values(1500, "INTEGER", strategy="zipf", range=[5, 8], e=0))
    assert set(even) == {5, 6, 7} and min(even.values()) > 400
    steep = Counter(values(1000, "INTEGER", strategy="zipf", range=[5, 100], e=3))
    assert steep[5] > 700


def test_nulls() -> None:
    found = values(500, "INTEGER", null_percentage=40)
    assert 150 < found.count(None) < 250 and found[found.index(None) + 1] in (None, found.index(None) + 1)
    assert values(5, "INTEGER", null_percentage=100) == [None] * 5
    assert values(2, "INTEGER", values=[]) == [None, None]
    assert values(3, "INTEGER", values=[1, None]) == [1, None, 1]


@pytest.mark.parametrize(
    ("kind", "field", "words"),
    [
        ("INTEGER", {"range": ["2021-01-01", "2022-01-01"]}, "fields.a.range: ['2021-01-01', '2022-01-01'] does not"),
        ("INTEGER", {"range": [0.5, 2]}, "it must hold whole numbers"),
        ("TIMESTAMP", {"range": ["x", "y"]}, "range: ['x', 'y'] does not fit the column"),
        ("DECIMAL(5,2)", {"range": ["x", "y"]}, "it must hold numbers"),
        ("DECIMAL(5,2)", {"range": [0.001, 0.002]}, "range: [0.001, 0.002] holds nothing"),
        ("DOUBLE", {"range": ["x", "y"]}, "must hold numbers"),
        ("VARCHAR", {"range": [-1, 3]}, "is that of a length: whole numbers from 0 on"),
        ("VARCHAR", {"scale": 0.5}, "scale: 0.5 is no whole number"),
        ("INTEGER", {"scale": 0.5}, "scale: 0.5 is no whole number of the column's steps"),
        ("INTEGER", {"values": [1, "x"]}, "values: 'x' does not fit. It must be an INT"),
        ("VARCHAR(2)", {"values": ["abc"]}, "values: 'abc' does not fit. It must be a VARCHAR(2)"),
        ("INTEGER NOT NULL", {"null_percentage": 1}, "a.null_percentage: 1: 'a' is never null"),
    ],
)
def test_what_a_column_cannot_hold_is_found_when_the_table_is_made(
    kind: str, field: dict[str, Any], words: str
) -> None:
    assert words in fails(kind, **field)


def test_without_an_end_and_a_rate_it_is_refused() -> None:
    with pytest.raises(SpecError, match="neither limit nor rate is given"):
        table()
    assert table(plan=[{"rate": 1}]).connectors[0].is_followed


def test_dice_are_even_and_never_change() -> None:
    assert Dice(key_of(1, "a"), 0).below(10**30) == 633934172062282175046110043916
    dice = Dice(5, 5)
    counts = Counter(dice.below(3) for _ in range(3000))
    assert set(counts) == {0, 1, 2} and min(counts.values()) > 850
    assert Dice(0, 0).bits() == 6235967106033911276, "rows that were made before would be made otherwise"
