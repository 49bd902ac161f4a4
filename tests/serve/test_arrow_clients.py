"""Answers as data frames: Arrow's stream read into pandas and polars, held to the JSON answer, and pandas.read_sql."""

import http.client
import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError

from hybrid.api.hybrid import Hybrid, TableDocuments
from hybrid.operations.tables.create import _definition
from hybrid.serve.queries import ARROW
from tests.query.halves import Halves, Row
from tests.serve.app import App

# By column: Pinot's type, Arrow's, polars'.
TYPES: dict[str, tuple[str, pa.DataType, Any]] = {
    "id": ("INT", pa.int32(), pl.Int32),
    "big": ("LONG", pa.int64(), pl.Int64),
    "small": ("FLOAT", pa.float32(), pl.Float32),
    "wide": ("DOUBLE", pa.float64(), pl.Float64),
    "word": ("STRING", pa.string(), pl.String),
    "flag": ("BOOLEAN", pa.bool_(), pl.Boolean),
    "moment": ("TIMESTAMP", pa.timestamp("us"), pl.Datetime("us")),
    "doc": ("JSON", pa.string(), pl.String),
    "raw": ("BYTES", pa.binary(), pl.Binary),
    "words": ("STRING_ARRAY", pa.list_(pa.string()), pl.List(pl.String)),
    "numbers": ("INT_ARRAY", pa.list_(pa.int32()), pl.List(pl.Int32)),
    "moments": ("TIMESTAMP_ARRAY", pa.list_(pa.timestamp("us")), pl.List(pl.Datetime("us"))),
    "ts": ("LONG", pa.int64(), pl.Int64),
}
FIRST = {
    "id": 1,
    "big": 2**62 + 1,
    "small": 0.1,
    "wide": 0.1,
    "word": "Grüße, '世界'\n\0",
    "flag": True,
    "moment": datetime(2021, 9, 24, 6, 2, 31, 123456, tzinfo=UTC),
    "doc": '{"a":[1,null]}',
    "raw": b"\x00\xff",
    "price": Decimal("12.5"),
    "words": ["a", "", "ß"],
    "numbers": [1, -2],
    "moments": [datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)],
    "ts": 1000,
}
NULLS: dict[str, Any] = {"id": 2, "ts": 2000}
EDGES = {
    "id": 3,
    "big": -(2**63),
    "small": math.inf,
    "wide": math.nan,
    "word": "",
    "flag": False,
    "moment": datetime(1, 1, 1, tzinfo=UTC),
    "doc": "null",
    "raw": b"",
    "price": Decimal("-0.000000000000000001"),
    "words": [],
    "numbers": [],
    "moments": [],
    "ts": 3000,
}
ALL = f"select {', '.join(TYPES)} from things order by id limit 10"
MANY = "select {} from orders a, orders b, orders c, orders d, orders e, orders f, orders g, orders h limit 100000"
MANY_ROWS = 4**8


@pytest.fixture
def things(orders: App) -> App:
    """Over a home with the tables orders and things."""
    lay_things(orders.home)
    return orders


def lay_things(home: Hybrid) -> None:
    """The table things: a column of every type, with nulls."""
    fields = [(name, kind[0]) for name, kind in TYPES.items() if name != "ts"]
    schema: dict[str, object] = {
        "schemaName": "things",
        "enableColumnBasedNullHandling": True,
        "dimensionFieldSpecs": [
            {"name": name, "dataType": kind.removesuffix("_ARRAY"), "singleValueField": not kind.endswith("_ARRAY")}
            for name, kind in fields
        ],
        "metricFieldSpecs": [{"name": "price", "dataType": "BIG_DECIMAL"}],
        "dateTimeFieldSpecs": [
            {"name": "ts", "dataType": "LONG", "format": "1:MILLISECONDS:EPOCH", "granularity": "1:MILLISECONDS"}
        ],
    }
    offline: dict[str, object] = {
        "tableName": "things",
        "tableType": "OFFLINE",
        "segmentsConfig": {"timeColumnName": "ts", "schemaName": "things"},
    }
    spec = home.validate(TableDocuments((schema, "schema"), [(offline, "offline")]))
    halves = Halves.create(home.settings.warehouse, spec)
    rows = [Row(row, row["ts"], offset, segment="things_1") for offset, row in enumerate((FIRST, NULLS, EDGES))]
    halves.commit_offline(rows)
    home.context.definitions.add(_definition(spec))


@pytest.fixture
def engine(orders: App) -> Iterator[sa.Engine]:
    made = sa.create_engine(f"pinot://127.0.0.1:{orders.port}/query/sql?controller={orders.url}/")
    yield made
    made.dispose()


def posted(app: App, sql: str, accept: str) -> tuple[int, str, bytes]:
    """Status, type and body of the answer to a statement."""
    connection = http.client.HTTPConnection("127.0.0.1", app.port, timeout=100)
    headers = {"Content-Type": "application/json", "Accept": accept}
    try:
        connection.request("POST", "/query/sql", json.dumps({"sql": sql}), headers)
        response = connection.getresponse()
        return response.status, response.headers.get_content_type(), response.read()
    finally:
        connection.close()


def arrow(app: App, sql: str) -> pa.Table:
    """The answer as Arrow."""
    status, kind, body = posted(app, sql, ARROW)
    assert (status, kind) == (200, ARROW), body
    with pa.ipc.open_stream(body) as reader:
        return reader.read_all()


def as_json(app: App, sql: str) -> tuple[list[str], list[str], list[list[Any]]]:
    """The answer as JSON: names, types and rows."""
    found = app.ok("POST", "/query/sql", {"sql": sql})
    assert found["exceptions"] == [], found
    shape = found["resultTable"]["dataSchema"]
    return shape["columnNames"], shape["columnDataTypes"], found["resultTable"]["rows"]


def plain(value: Any, kind: str) -> Any:
    """A value of a JSON answer as Python has it: what JSON has no form for is text there."""
    if value is None:
        return None
    if kind.endswith("_ARRAY"):
        return [plain(one, kind.removesuffix("_ARRAY")) for one in value]
    match kind:
        case "FLOAT":
            return pa.scalar(float(value), pa.float32()).as_py()
        case "DOUBLE":
            return float(value)
        case "TIMESTAMP":
            return datetime.fromisoformat(value)
        case "BYTES":
            return bytes.fromhex(value)
        case "BIG_DECIMAL":
            return Decimal(value)
    return value


def same(one: Any, other: Any) -> bool:
    """Equality in which NaN equals itself."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    both_nan = isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other)
    return both_nan or (type(one) is type(other) and one == other)


def json_rows(app: App, sql: str) -> list[list[Any]]:
    """The rows of the JSON answer as Python has their values."""
    _, kinds, rows = as_json(app, sql)
    return [[plain(value, kind) for value, kind in zip(row, kinds, strict=True)] for row in rows]


def polars(table: pa.Table) -> pl.DataFrame:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame


def arrow_rows(table: pa.Table) -> list[list[Any]]:
    return [list(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]


@pytest.mark.slow
def test_types_values_and_nulls(things: App) -> None:
    names, kinds, _ = as_json(things, ALL)
    assert dict(zip(names, kinds, strict=True)) == {name: kind[0] for name, kind in TYPES.items()}
    table = arrow(things, ALL)
    assert dict(zip(table.schema.names, table.schema.types, strict=True)) == {
        name: kind[1] for name, kind in TYPES.items()
    }
    rows = arrow_rows(table)
    assert same(rows, json_rows(things, ALL))
    stored = [[_stored(row.get(name), name) for name in TYPES] for row in (FIRST, NULLS, EDGES)]
    assert same(rows, stored)


def _stored(value: Any, name: str) -> Any:
    """What was laid, as a data frame has it: times are UTC without a zone, FLOAT has 32 bits."""
    if isinstance(value, list):
        return [_stored(one, name) for one in value]
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    return plain(value, "FLOAT") if name == "small" else value


@pytest.mark.slow
def test_pandas(things: App) -> None:
    frame = arrow(things, ALL).to_pandas()
    assert [str(frame[name].dtype) for name in ("id", "ts", "small", "moment")] == [
        "int32", "int64", "float32", "datetime64[us]",
    ]  # fmt: skip
    assert frame["id"].tolist() == [1, 2, 3] and frame["ts"].tolist() == [1000, 2000, 3000]
    nulls = frame.iloc[1].isna()
    assert {name for name, is_null in nulls.items() if not is_null} == {"id", "ts"}
    assert frame["word"].tolist() == [FIRST["word"], None, ""]
    assert frame["moment"][0] == pd.Timestamp("2021-09-24 06:02:31.123456")
    assert frame["raw"].tolist() == [b"\x00\xff", None, b""] and frame["flag"].tolist() == [True, None, False]
    assert list(frame["words"][0]) == FIRST["words"] and list(frame["numbers"][2]) == []
    # What pandas itself has no null for keeps its bits with Arrow's own types.
    exact = arrow(things, ALL).to_pandas(types_mapper=pd.ArrowDtype)
    assert exact["big"][0] == 2**62 + 1 and exact["big"][2] == -(2**63) and exact["big"].isna().tolist()[1]


@pytest.mark.slow
def test_polars(things: App) -> None:
    frame = polars(arrow(things, ALL))
    assert dict(frame.schema) == {name: kind[2] for name, kind in TYPES.items()}
    assert same([list(row) for row in frame.rows()], json_rows(things, ALL))
    assert frame.null_count().rows()[0] == tuple(int(name not in NULLS) for name in TYPES)
    summed = frame.select(pl.col("ts").sum(), pl.col("numbers").list.sum().max()).row(0)
    assert summed == (6000, 0)


@pytest.mark.slow
def test_decimals_are_exact(things: App) -> None:
    sql = "select price from things order by id limit 10"
    table = arrow(things, sql)
    assert pa.types.is_decimal(table.schema.types[0])
    expected = [Decimal("12.5"), None, Decimal("-0.000000000000000001")]
    assert table.column(0).to_pylist() == expected == [row[0] for row in json_rows(things, sql)]
    assert table.to_pandas()["price"].tolist() == expected
    assert polars(table)["price"].to_list() == expected


@pytest.mark.slow
def test_all_digits_of_a_decimal(orders: App) -> None:
    digits = "12345678901234567890.123456789012345678"
    sql = f"select cast('{digits}' as decimal(38, 18)) d from orders limit 1"
    assert as_json(orders, sql)[2] == [[digits]]
    assert arrow(orders, sql).column(0).to_pylist() == [Decimal(digits)]


@pytest.mark.slow
def test_a_column_of_decimals_has_one_type(things: App) -> None:
    sql = "select price from things where id = {} limit 1"
    assert len({str(arrow(things, sql.format(number)).schema.types[0]) for number in (1, 2, 3)}) == 1


@pytest.mark.slow
def test_numbers_beyond_a_long(orders: App) -> None:
    sql = "select cast('18446744073709551615' as ubigint) u from orders limit 1"
    _, kinds, rows = as_json(orders, sql)
    assert kinds != ["LONG"] or abs(int(rows[0][0])) < 2**63
    assert arrow_rows(arrow(orders, sql)) == json_rows(orders, sql)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql",
    [
        "select customer, count(*) n, sum(amount), avg(amount) from orders group by customer limit 10",
        "select sum(amount), max(customer), min(ts), distinctcount(order_id) from orders where order_id > 100",
        "select null as nothing, 1 as one, 1.5 as half, 'x' as word, true as yes from orders limit 1",
        "select case when order_id > 2 then amount end a, case when order_id < 3 then ts end t from orders order by 2",
    ],
)
def test_other_statements(orders: App, sql: str) -> None:
    names, _, rows = as_json(orders, sql)
    table = arrow(orders, sql)
    assert table.schema.names == names and len(rows) > 0
    assert same(arrow_rows(table), json_rows(orders, sql))
    assert same([list(row) for row in polars(table).rows()], json_rows(orders, sql))


@pytest.mark.slow
def test_an_empty_result(things: App) -> None:
    sql = f"select {', '.join(TYPES)} from things where id > 100"
    table = arrow(things, sql)
    assert table.num_rows == 0 and table.schema == arrow(things, ALL).schema
    frame = polars(table)
    assert frame.is_empty() and dict(frame.schema) == {name: kind[2] for name, kind in TYPES.items()}
    empty = table.to_pandas()
    assert empty.empty and list(empty.columns) == list(TYPES) and str(empty["moment"].dtype) == "datetime64[us]"


@pytest.mark.slow
def test_a_large_result(orders: App) -> None:
    columns = "a.order_id + 10 * b.order_id + 100 * c.order_id as n, d.amount, e.customer, case when f.ts > 2000 "
    sql = MANY.format(columns + "then f.ts end as t")
    table = arrow(orders, sql)
    assert table.num_rows == MANY_ROWS >= 50_000
    names, _, rows = as_json(orders, sql)
    assert table.schema.names == names
    one = polars(table)
    other = pl.DataFrame(rows, schema=dict(one.schema), orient="row")
    assert one.sort(names).equals(other.sort(names))
    frame = table.to_pandas()
    assert frame["t"].isna().sum() == MANY_ROWS // 2 and frame["amount"].sum() == MANY_ROWS * 3.75
    assert set(frame["customer"]) == {"ada"} and frame["n"].nunique() == 64


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("selec 1", 150),
        ("select * from ordres", 190),
        ("select nope from orders", 710),
        ("select 1 from orders; x", 150),
    ],
)
def test_an_error_is_json(orders: App, sql: str, code: int) -> None:
    status, kind, body = posted(orders, sql, ARROW)
    assert (status, kind) == (200, "application/json")
    (failure,) = json.loads(body)["exceptions"]
    assert failure["errorCode"] == code and len(failure["message"]) > 5


@pytest.mark.slow
def test_an_answer_is_arrow_only_where_it_is_asked_for(orders: App) -> None:
    sql = "select count(*) from orders"
    for accept in ("*/*", "application/json", "text/html,*/*;q=0.8"):
        assert posted(orders, sql, accept)[1] == "application/json"
    assert posted(orders, sql, f"{ARROW}, application/json;q=0.5")[1] == ARROW


@pytest.mark.slow
def test_pandas_read_sql(engine: sa.Engine) -> None:
    """By pinotdb's dialect. What pandas makes of a column is by its values, as DB-API tells it no types."""
    frame = pd.read_sql(sa.text("select order_id, customer, amount, ts from orders order by order_id"), engine)
    assert frame.to_dict("list") == {
        "order_id": [1, 2, 3, 4],
        "customer": ["ada"] * 4,
        "amount": [1.5, 3.0, 4.5, 6.0],
        "ts": [1000, 2000, 3000, 4000],
    }
    assert [str(kind) for kind in frame.dtypes] == ["int64", "object", "float64", "int64"]
    wanted = sa.text("select order_id from orders where customer = :who and order_id > :low order by order_id")
    assert pd.read_sql(wanted, engine, params={"who": "ada", "low": 2})["order_id"].tolist() == [3, 4]
    assert pd.read_sql(wanted, engine, params={"who": "o'hara", "low": 2}).empty
    nulls = pd.read_sql(sa.text("select case when order_id > 2 then amount end a from orders order by 1"), engine)
    assert nulls["a"].isna().sum() == 2 and nulls["a"].sum() == 10.5


@pytest.mark.slow
def test_pandas_read_sql_of_much_and_nothing(engine: sa.Engine) -> None:
    many = pd.read_sql(sa.text(MANY.format("a.order_id, h.amount")), engine)
    assert len(many) == MANY_ROWS and many["amount"].sum() == MANY_ROWS * 3.75
    with engine.connect() as connection:
        chunks = pd.read_sql(sa.text(MANY.format("a.order_id")), connection, chunksize=10_000)
        assert [len(chunk) for chunk in chunks] == [10_000] * 6 + [5536]
    nothing = pd.read_sql(sa.text("select order_id, amount from orders where order_id > 100"), engine)
    assert nothing.empty and list(nothing.columns) == ["order_id", "amount"]
    with pytest.raises(DatabaseError, match="'nope' does not exist"):
        pd.read_sql(sa.text("select nope from orders"), engine)


@pytest.mark.slow
def test_pandas_read_sql_table(engine: sa.Engine) -> None:
    """By reflection. Without LIMIT it is Pinot's first 10 rows."""
    frame = pd.read_sql_table("orders", engine, columns=["order_id", "ts"])
    assert sorted(frame["order_id"]) == [1, 2, 3, 4] and list(frame.columns) == ["order_id", "ts"]
