"""DuckDB's errors reach nobody as they are: Pinot's types, the value, what would do; no settings, no signatures."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from hybrid.errors import QueryError
from hybrid.query.engine_words import kind_of, said_of, without_inner_words
from hybrid.query.result import QueryResult
from hybrid.schema.schema import FieldKind, FieldSpec
from hybrid.schema.timeformat import TimeFormat
from hybrid.schema.types import DataType
from tests.query.halves import KEY, Halves, Row, orders_spec

Ask = Callable[..., QueryResult]
INNER = re.compile(
    r"VARCHAR|INTEGER|BIGINT|\bU?INT\d|BLOB|DECIMAL\(|_LITERAL|andidate|xplicit|\bSET [a-z_]+ ?=|error_on|_hy_|TRY\(|"
    r"argument types|might (?:need|want)|DuckDB|\bstruct\b",
    re.DOTALL,
)


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> Halves:
    moments = TimeFormat.parse("TIMESTAMP", "s", "f", DataType.TIMESTAMP)
    extra = [
        FieldSpec("price", DataType.BIG_DECIMAL, FieldKind.METRIC),
        FieldSpec("doc", DataType.JSON, FieldKind.DIMENSION),
        FieldSpec("at", DataType.TIMESTAMP, FieldKind.DATE_TIME, time_format=moments),
        FieldSpec("ok", DataType.BOOLEAN, FieldKind.DIMENSION),
        FieldSpec("raw", DataType.BYTES, FieldKind.DIMENSION),
        FieldSpec("tags", DataType.STRING, FieldKind.DIMENSION, single_value=False),
        FieldSpec("big", DataType.LONG, FieldKind.METRIC),
        FieldSpec("product.name", DataType.STRING, FieldKind.DIMENSION),
    ]
    built = Halves.create(Path(tmp_path_factory.mktemp("words")), orders_spec(extra=extra))
    values = {
        "customer": "c0", "amount": 1.5, "ts": 1, "price": Decimal("12345678901234567890.5"), "doc": '{"a": "x"}',
        "at": datetime(2021, 9, 24, tzinfo=UTC), "ok": True, "raw": b"\x01", "tags": ["x"], "big": 2**62,
        "product.name": "pen",
    }  # fmt: skip
    built.commit_realtime([Row({**values, "order_id": n}, 1, n) for n in range(3)], offsets={KEY: 3})
    return built


def refused(ask: Ask, halves: Halves, sql: str) -> QueryError:
    with pytest.raises(QueryError) as caught:
        ask(halves, sql)
    found = INNER.search(f"{caught.value} {caught.value.hint}")
    assert found is None, f"{sql}: {caught.value}"
    return caught.value


@pytest.mark.parametrize(
    ("expression", "code", "words"),
    [
        ("customer + 1", 200, "'+' cannot compute with STRING and INT"),
        ("-at", 200, "'-' cannot compute with TIMESTAMP"),
        ("cast('abc' as int)", 200, "'abc' is no number."),
        ("cast(customer as double)", 200, "'c0' is no DOUBLE (column 'customer')."),
        ("cast(customer as timestamp)", 200, "'c0' is no TIMESTAMP."),
        ("cast('2021-13-45' as timestamp)", 200, "'2021-13-45' is no timestamp."),
        ("cast(ok as timestamp)", 200, "BOOLEAN cannot become TIMESTAMP"),
        ("cast(tags as int)", 200, "STRING_ARRAY cannot become LONG."),
        ("cast(1e300 as int)", 200, "1e+300 does not fit INT."),
        ("cast(order_id as foo)", 700, "'foo' is no type"),
        ("big * 4", 200, "4611686018427387904 * 4 does not fit LONG."),
        ("price * price", 200, "A result of BIG_DECIMAL values has more than 38 digits"),
        ("price * price * price", 200, "A product of BIG_DECIMAL values needs more than 38 decimal places"),
        ("sumprecision(price * 1000000000000000)", 200, "A result of BIG_DECIMAL values has more than 38 digits"),
        ("order_id % 0", 200, "Division by zero"),
        ("factorial(100)", 200, "too large for its type"),
        ("regexp_like(customer, '[')", 200, "The regular expression is wrong: missing ]"),
        ("regexp_extract(customer, '*')", 200, "The regular expression is wrong: no argument for repetition"),
        ("json_extract_scalar(doc, '$[', 'STRING')", 200, "The JSON path is wrong near '['"),
        ("datetrunc('day', ts, 'MILLISECONDS', 'Mars/Base')", 700, "'Mars/Base' is no time zone."),
        ("fromdatetime(customer, 'yyyy')", 200, "'c0' does not fit the date pattern."),
        ("totimestamp(99999999999999999)", 200, "A number is no time"),
        ("tags > 1", 200, "STRING and INT cannot be used together here."),
        ("greatest(order_id, customer)", 200, "INT and STRING cannot be used together here."),
        ("case when customer then 1 else 2 end", 200, "'c0' is no BOOLEAN"),
        ("sum(customer)", 200, "SUM cannot take (STRING); it takes (BIG_DECIMAL) or (BOOLEAN) or (INT) or (LONG) or "),
        (
            "order_id, count(*)",
            200,
            "Column 'order_id' must be in GROUP BY or in an aggregate function at line 1, column 8.",
        ),
        ("(select order_id from orders)", 200, "gives more than one row"),
        ("frombase64('***')", 200, "The text is no Base64."),
        ("fromutf8(unhex('e9'))", 200, "Bytes that are read as text are not UTF-8. BYTESTOHEX(x) shows any bytes."),
        ("unhex('zz')", 200, "'z' is no hex digit"),
        ("doc.a", 710, "Column 'doc' has no field 'a'. A field of JSON is read by JSON_EXTRACT_SCALAR(doc, '$.a',"),
        ("orders.customer.x", 710, "Column 'customer' has no field 'x'."),
        ("shop.name", 710, "Table or alias 'shop' is not in FROM."),
    ],
)
def test_values_and_types(ask: Ask, halves: Halves, expression: str, code: int, words: str) -> None:
    error = refused(ask, halves, f"select {expression} from orders")
    assert words in str(error) and error.pinot_code == code


@pytest.mark.parametrize(
    ("rest", "words"),
    [
        ("where price = 'x'", "'x' is no number: column 'price' is BIG_DECIMAL at line 1, column 35."),
        ("where at > 'yesterday'", "'yesterday' is no TIMESTAMP: column 'at' is TIMESTAMP at line 1, column 35. Times"),
        ("where ts > '2021-09-24'", "'2021-09-24' is no LONG: column 'ts' is LONG at line 1, column 35."),
        ("where order_id in (1, 'x')", "'x' is no INT: column 'order_id' is INT at line 1, column 35."),
        ("where order_id >= 0 and 'x' <= big", "'x' is no LONG: column 'big' is LONG at line 1, column 60."),
        ("where raw = 'zz'", "'z' is no hex digit"),
        ("where sum(order_id) > 1", "WHERE cannot hold aggregates"),
        ("order by 99", "ORDER BY names a column by a number that is not from 1 to 1."),
        ("limit order_id", "Column 'order_id' cannot be used here"),
        ("limit 'x'", "'x' is no LONG."),
        (
            "join orders b on true",
            "Column 'order_id' is in several tables: write orders.order_id or b.order_id at line 1, column 8.",
        ),
    ],
)
def test_clauses(ask: Ask, halves: Halves, rest: str, words: str) -> None:
    assert words in str(refused(ask, halves, f"select order_id from orders {rest}"))


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("2021-09-24", "'ts' holds numbers: 2021-09-24 (UTC) is 1632441600000."),
        ("2021-09-24 10:00:00", "'ts' holds numbers: 2021-09-24 10:00:00 (UTC) is 1632477600000."),
        ("2021-09-24T10:00:00+02:00", "'ts' holds numbers: 2021-09-24T10:00:00+02:00 (UTC) is 1632470400000."),
        ("yesterday", None),
    ],
)
def test_a_date_beside_epoch_milliseconds(ask: Ask, halves: Halves, text: str, hint: str | None) -> None:
    assert refused(ask, halves, f"select count(*) from orders where ts >= '{text}'").hint == hint
    sql = "select count(*) from orders where ts >= :since"
    with pytest.raises(QueryError, match="column 'ts' is LONG at line 1, column 35") as raised:
        ask(halves, sql, params={"since": text})
    assert raised.value.hint == hint


def test_names_of_columns_are_no_words_of_errors() -> None:
    for name in ("overflow", "Division by zero", "out of range"):
        found = said_of(f'column "{name}" must appear in the GROUP BY clause or be used in an aggregate function')
        assert found is not None and found.text == f"Column '{name}' must be in GROUP BY or in an aggregate function."


def test_what_no_rule_knows_loses_inner_words() -> None:
    assert said_of("Something new") is None
    text = 'Cannot do it with VARCHAR! Use TRY(...) to return NULL, or SET x=false. You might want to cast. "a" stays.'
    assert without_inner_words(text) == "Cannot do it with STRING"
    assert [kind_of(one) for one in ("INTEGER_LITERAL", "INT64", "VARCHAR[]", "DECIMAL(38,18)", "BLOB")] == [
        "INT", "LONG", "STRING_ARRAY", "BIG_DECIMAL", "BYTES",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "sql",
    [
        "select product.name from orders limit 1",
        "select orders.product.name from orders limit 1",
        "select \"product.name\" from orders where product.name = 'pen' limit 1",
        "select t.product.name from orders t where t.product.name like 'p%' order by product.name limit 1",
        "select product.name from orders group by product.name",
        "select max(a.product.name) from orders a join orders b on a.product.name = b.product.name",
        "select product.name from (select product.name from orders) limit 1",
    ],
)
def test_columns_with_dots_need_no_quotes(ask: Ask, halves: Halves, sql: str) -> None:
    found = ask(halves, sql)
    assert found.rows == [("pen",)]
    assert found.column_names[0] in ("product.name", "max(product.name)")


def test_a_name_in_from_comes_first(ask: Ask, halves: Halves) -> None:
    error = refused(ask, halves, "select product.name from orders product")
    assert "Column 'name' does not exist in 'product' at line 1, column 16." in str(error)
    assert ask(halves, "select product.order_id from orders product where product.order_id = 2").rows == [(2,)]


def test_the_database_before_columns_of_joins(ask: Ask, halves: Halves) -> None:
    sql = (
        'select "default".a.order_id, default.b.customer from "default"."orders" a join default.orders b '
        "on default.a.order_id = b.order_id where default.b.order_id = 1 group by default.a.order_id, b.customer "
        "order by default.a.order_id"
    )
    assert ask(halves, sql).rows == [(1, "c0")]
