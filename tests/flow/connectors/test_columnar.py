"""A batch converted by its columns is what the decoder makes of its rows, or is left to it."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.config.ddl import parse_ddl
from hybrid.config.table_json import parse_table
from hybrid.flow.connectors.convert import Rows
from hybrid.flow.connectors.source import PIECE, PLACE
from tests.examples import examples

DDL = """CREATE TABLE t (id BIGINT NOT NULL{key}, small SMALLINT, n INTEGER, price DECIMAL(15,2) DEFAULT 1.5,
  f REAL, d DOUBLE, ok BOOLEAN, code CHAR(3), name VARCHAR(5), free VARCHAR, day DATE, raw VARBINARY,
  at TIMESTAMP{time}, doc VARIANT);"""
INSTANTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)).map(lambda one: one.replace(tzinfo=UTC))
VALUES: dict[str, tuple[Any, Any]] = {
    "ID": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "small": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "n": (pa.int64(), st.integers(-(2**31) - 2, 2**31 + 2)),
    "price": (pa.decimal128(15, 2), st.decimals(-1000, 1000, places=2)),
    "f": (pa.float32(), st.floats(width=32)),
    "d": (pa.float64(), st.floats()),
    "ok": (pa.bool_(), st.booleans()),
    "code": (pa.string(), st.sampled_from(["a  ", "abc", "", "  b", "äöü", "abcd", "ab   "])),
    "name": (pa.string(), st.sampled_from(["", "five5", "sixsix", "ü" * 5])),
    "free": (pa.large_string(), st.text(max_size=4)),
    "day": (pa.date32(), st.dates(date(2, 1, 1), date(9998, 1, 1))),
    "raw": (pa.binary(), st.binary(max_size=3)),
    "at": (pa.timestamp("us", tz="UTC"), INSTANTS),
}


def table(key: bool, time: bool) -> Any:
    text = DDL.format(key=" PRIMARY KEY" if key else "", time=" NOT NULL LATENESS INTERVAL 1 HOUR" if time else "")
    (found,) = parse_ddl(text, "t.sql")
    return parse_table(found.schema_doc, "t.sql", [(config, "t.sql") for config in found.configs])


def converted(rows: Rows, batch: pa.RecordBatch, by_columns: bool) -> tuple[list[Any], Any]:
    if not by_columns:
        rows._columnar._is_possible = False
    found = rows.convert(batch)
    return [repr(row) for row in found.to_pylist()], vars(rows.note)


@pytest.mark.slow
@settings(max_examples=examples(150))
@given(
    data=st.data(),
    names=st.sets(st.sampled_from(sorted(VALUES.keys() - {"ID", "at"}))),
    count=st.integers(0, 3),
    key=st.booleans(),
    time=st.booleans(),
    nulls=st.booleans(),
)
def test_by_columns_and_by_rows(data: Any, names: set[str], count: int, key: bool, time: bool, nulls: bool) -> None:
    spec, chosen = table(key, time), ["ID", *sorted(names), "at"]
    arrays = []
    for name in chosen:
        kind, strategy = VALUES[name]
        values = data.draw(st.lists(strategy | st.none() if nulls else strategy, min_size=count, max_size=count))
        arrays.append(pa.array(values, kind))
    arrays += [pa.array([7] * count, pa.int32()), pa.array(range(count), pa.int64())]
    batch = pa.RecordBatch.from_arrays(arrays, names=[*chosen, PIECE, PLACE])
    found = [converted(Rows(spec, "c", batch.schema.names), batch, by_columns) for by_columns in (True, False)]
    assert found[0] == found[1]


def test_the_columns_of_the_recipe_are_taken_whole() -> None:
    """That the quick way is not given up without anybody noticing."""
    from pathlib import Path

    from tests.recipes.lineitems import SCHEMA, lineitems

    file = Path(__file__).resolve().parents[3] / "data/lineitem/lineitem.sql"
    (ddl,) = parse_ddl(file.read_text(), "lineitem.sql")
    spec = parse_table(ddl.schema_doc, "s", [(config, "c") for config in ddl.configs])
    records = pa.Table.from_pylist(lineitems(10), SCHEMA)
    records = records.append_column(PIECE, pa.array([0] * 10, pa.int32()))
    batch = records.append_column(PLACE, pa.array(range(10), pa.int64())).to_batches()[0]
    rows = Rows(spec, "c", batch.schema.names)
    assert rows._columnar.convert(batch) is not None
    assert converted(rows, batch, True) == converted(Rows(spec, "c", batch.schema.names), batch, False)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("price", pa.array([Decimal("1.234")])),
        ("name", pa.array(["sixsix"])),
        ("n", pa.array([2**31])),
        ("ID", pa.nulls(1)),
    ],
)
def test_what_does_not_fit_is_said_by_the_decoder(name: str, values: pa.Array) -> None:
    columns = {"ID": pa.array([1]), name: values, PIECE: pa.array([0], pa.int32()), PLACE: pa.array([4], pa.int64())}
    batch = pa.RecordBatch.from_pydict(columns)
    rows = Rows(table(False, False), "c", batch.schema.names)
    assert rows.convert(batch).num_rows == 0
    assert rows.note.problem is not None and rows.note.problem[:3] == (0, 4, ", row 5")
