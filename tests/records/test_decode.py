import json
import math
import pickle
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.config.table_config import TableSpec
from hybrid.config.table_json import parse_table
from hybrid.records.decode import Decoder
from hybrid.records.outcome import Decoded, Rejected
from tests.examples import examples

# The events of the orders recipe: (order_id, customer_id, order_status, amount, ts).
EVENTS = [
    (1, 101, "OPEN", 13.29, "1632463351000"), (2, 102, "IN_TRANSIT", 209.35, "1632463361000"),
    (3, 103, "COMPLETED", 199.35, "1632463391000"), (4, 105, "COMPLETED", 3.24, "1632467065000"),
    (5, 103, "OPEN", 9.77, "1632467066000"), (6, 104, "OPEN", 55.52, "1632467068000"),
    (7, 104, "CANCELLED", 52.54, "1632467070000"), (8, 105, "OPEN", 13.29, "1632667070000"),
    (9, 105, "IN_TRANSIT", 2.92, "1632667170000"), (10, 105, "COMPLETED", 12.22, "1632677270000"),
    (11, 106, "OPEN", 13.94, "1632677270400"), (12, 107, "OPEN", 20.32, "1632677270403"),
    (13, 108, "OPEN", 45.11, "1632677270508"), (14, 109, "OPEN", 129.22, "1632677270699"),
]  # fmt: skip
ORDERS = {"order_id": "INT", "customer_id": "INT", "order_status": "STRING", "amount": "FLOAT"}


def arrow_schema(spec):
    """The user's columns, in the schema's order."""
    return pa.schema([pa.field(field.name, field.arrow_type()) for field in spec.schema.fields])


def to_arrow(spec, columns):
    """Decoded columns, which Arrow must take."""
    fields = zip(spec.schema.fields, columns, strict=True)
    return [pa.array(values, type=field.arrow_type()) for field, values in fields]


def table(
    columns: dict[str, str],
    *,
    time: dict[str, str] | None = None,
    many: tuple[str, ...] = (),
    key: tuple[str, ...] = (),
    upsert: dict[str, Any] | None = None,
    nulls: bool = False,
) -> TableSpec:
    time = {"name": "ts", "dataType": "LONG", "format": "1:MILLISECONDS:EPOCH"} if time is None else time
    schema: dict[str, object] = {
        "schemaName": "t",
        "dimensionFieldSpecs": [
            {"name": name, "dataType": data_type, "singleValueField": name not in many}
            for name, data_type in columns.items()
        ],
        "dateTimeFieldSpecs": [time] if time else [],
        "primaryKeyColumns": list(key),
    }
    config: dict[str, object] = {
        "tableName": "t",
        "tableType": "OFFLINE",
        "segmentsConfig": {"timeColumnName": "ts"} if time else {},
        "tableIndexConfig": {"nullHandlingEnabled": nulls},
        "upsertConfig": upsert or {},
    }
    return parse_table(schema, "s", [(config, "c")])


def good(result: Decoded | Rejected) -> Decoded:
    assert isinstance(result, Decoded), result
    return result


def reason(result: Decoded | Rejected) -> str:
    assert isinstance(result, Rejected), result
    assert result.reason.endswith(".")
    result.reason.encode()
    return result.reason


def one(data_type: str, text: str, *, many: bool = False, nulls: bool = False) -> Decoded | Rejected:
    """What the JSON text of one value becomes in a column of that type."""
    decoder = Decoder(table({"c": data_type}, time={}, many=("c",) if many else (), nulls=nulls))
    return decoder.decode(b'{"c":' + text.encode("utf-8", "surrogatepass") + b"}")


def test_recipe_events_decode_exactly() -> None:
    decoder = Decoder(table(ORDERS))
    rows = []
    for event in EVENTS:
        record = dict(zip([*ORDERS, "ts"], event, strict=True))
        row = good(decoder.decode(json.dumps(record, separators=(",", ":")).encode()))
        assert row.time_ms == int(event[4]) and row.values[4] == row.time_ms and not row.is_delete
        assert row.values[:3] == event[:3]
        assert row.values[3] == struct.unpack("<f", struct.pack("<f", event[3]))[0]
        rows.append(row)
    assert math.isclose(sum(float(str(row.values[3])) for row in rows), 780.08, rel_tol=1e-6)


@pytest.mark.parametrize(
    ("data_type", "text", "value"),
    [
        ("INT", "1", 1), ("INT", '"1"', 1), ("INT", "1.0", 1), ("INT", "1e2", 100), ("INT", "true", 1),
        ("INT", '" 7 "', 7), ("INT", "-2147483648", -(2**31)), ("INT", '"1.0"', 1),
        ("LONG", '"1632463351000"', 1632463351000), ("LONG", "9223372036854775807", 2**63 - 1),
        ("LONG", "9007199254740993.0", 9007199254740993),
        ("FLOAT", "0.1", 0.10000000149011612), ("FLOAT", "3.4028235e38", 3.4028234663852886e38),
        ("FLOAT", '"1.5"', 1.5), ("FLOAT", "1e-60", 0.0),
        ("DOUBLE", "0.1", 0.1), ("DOUBLE", '"-Infinity"', -math.inf), ("DOUBLE", "1", 1.0), ("DOUBLE", "true", 1.0),
        ("BIG_DECIMAL", "0.1", Decimal("0.1")), ("BIG_DECIMAL", "1234567890123456789.123456789012345678",
                                                 Decimal("1234567890123456789.123456789012345678")),
        ("BIG_DECIMAL", '"1e3"', Decimal(1000)), ("BIG_DECIMAL", "99999999999999999999", Decimal("9" * 20)),
        ("BOOLEAN", "true", True), ("BOOLEAN", '"False"', False), ("BOOLEAN", "1", True), ("BOOLEAN", '"0"', False),
        ("BOOLEAN", "1.0", True),
        ("STRING", '"x"', "x"), ("STRING", "1", "1"), ("STRING", "1.10", "1.10"), ("STRING", "true", "true"),
        ("STRING", '{"b": [1, 2.50], "a": "é"}', '{"b":[1,2.50],"a":"é"}'), ("STRING", "[]", "[]"),
        ("STRING", '"a\\u0000b"', "a\0b"), ("STRING", '"\\ud83d\\ude00"', "😀"), ("STRING", '""', ""),
        ("JSON", '{"b": 1.0, "a": [null, true]}', '{"b":1.0,"a":[null,true]}'), ("JSON", '"{\\"a\\": 1}"', '{"a":1}'),
        ("JSON", "5", "5"), ("JSON", '"\\"x\\""', '"x"'), ("JSON", '"[1, 2]"', "[1,2]"),
        ("BYTES", '"0AfF"', b"\x0a\xff"), ("BYTES", '""', b""),
        ("TIMESTAMP", "1632463351123", datetime(2021, 9, 24, 6, 2, 31, 123000, tzinfo=UTC)),
        ("TIMESTAMP", '"1632463351123"', datetime(2021, 9, 24, 6, 2, 31, 123000, tzinfo=UTC)),
        ("TIMESTAMP", '"2021-09-24 06:02:31.5"', datetime(2021, 9, 24, 6, 2, 31, 500000, tzinfo=UTC)),
        ("TIMESTAMP", '"2021-09-24T08:02:31+02:00"', datetime(2021, 9, 24, 6, 2, 31, tzinfo=UTC)),
        ("TIMESTAMP", '"2021-09-24T06:02:31Z"', datetime(2021, 9, 24, 6, 2, 31, tzinfo=UTC)),
        ("TIMESTAMP", '"2021-09-24"', datetime(2021, 9, 24, tzinfo=UTC)),
        ("TIMESTAMP", "-1", datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)),
    ],
)  # fmt: skip
def test_coercions(data_type: str, text: str, value: object) -> None:
    stored = good(one(data_type, text)).values[0]
    assert stored == value and type(stored) is type(value)
    to_arrow(table({"c": data_type}, time={}), [[stored]])


@pytest.mark.parametrize(
    ("data_type", "text"),
    [
        ("INT", "1.5"), ("INT", "2147483648"), ("INT", '"x"'), ("INT", '""'), ("INT", "[1]"), ("INT", "{}"),
        ("INT", '"1_0"'), ("INT", '"\u0661"'), ("INT", "1e999999999"), ("INT", '"0x1"'), ("INT", '"NaN"'),
        ("LONG", "9223372036854775808"), ("LONG", '"1e999999999"'), ("LONG", '"' + "9" * 5000 + '"'),
        ("FLOAT", "1e39"), ("FLOAT", "1" + "0" * 400), ("FLOAT", '"inf"'), ("DOUBLE", "1e400"), ("DOUBLE", '"1,5"'),
        ("DOUBLE", "[]"), ("DOUBLE", '"nan"'),
        ("BIG_DECIMAL", "0.1234567890123456789"), ("BIG_DECIMAL", "100000000000000000000"), ("BIG_DECIMAL", '"NaN"'),
        ("BIG_DECIMAL", "1e999999999999999999999"), ("BIG_DECIMAL", "1e-999999999"),
        ("BOOLEAN", "2"), ("BOOLEAN", '"yes"'), ("BOOLEAN", "0.5"), ("BOOLEAN", "[true]"),
        ("STRING", '"\\ud800"'), ("STRING", '{"\\udfff": 1}'),
        ("JSON", '"x"'), ("JSON", '"{"'), ("JSON", '""'), ("JSON", '"NaN"'), ("JSON", '"' + "[" * 999 + '"'),
        ("JSON", '["\\ud800"]'),
        ("BYTES", '"0"'), ("BYTES", '"zz"'), ("BYTES", '"0a ff"'), ("BYTES", "1"),
        ("TIMESTAMP", '"yesterday"'), ("TIMESTAMP", '"2021-02-30"'), ("TIMESTAMP", "253402300800000"),
        ("TIMESTAMP", '"0001-01-01T00:00:00+10:00"'), ("TIMESTAMP", '"2021-01-01T00:00:00+99:00"'),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_rejected(data_type: str, text: str) -> None:
    why = reason(one(data_type, text))
    assert why.startswith("Column 'c': ") and data_type in why and len(why) < 300


def test_a_reason_has_column_value_and_type() -> None:
    assert reason(one("INT", '"abc"')) == (
        "Column 'c': \"abc\" does not fit. It must be an INT: a whole number from -2147483648 to 2147483647."
    )
    assert reason(one("INT", "[1]")) == "Column 'c': [1] is a list; the column holds one INT."


@pytest.mark.parametrize(
    ("payload", "part"),
    [
        (None, "no value"), (b"", "not one JSON object"), (b"null", "not one JSON object but null"),
        (b"[{}]", "not one JSON object but [{}]"), (b'"x"', "not one JSON object"), (b"{} {}", "Extra data"),
        (b'{"ts":1', "not one JSON object"), (b"\xff\xfe{", "not UTF-8: byte 0"), (b'{"ts":"\xc3"}', "not UTF-8"),
        (b'{"ts":1,"order_id":NaN}', "NaN is not JSON"), (b'{"ts":-Infinity}', "-Infinity is not JSON"),
        (b'{"ts":1,}', "not one JSON object"), (b"{'ts':1}", "not one JSON object"),
        ("{}".encode("utf-16"), "not"), (b'{"a":' * 100_000, "nests deeper"), (b"[" * 100_000, "nests deeper"),
        (b'{"ts":1,"a":' + b"[" * 201 + b"]" * 201 + b"}", "nests deeper"),
        (b'{"ts":1,"order_status":"a\nb"}', "not one JSON object"),
        (b'{"ts":1,"x":' + b"9" * 5000 + b"}", "4300 digits"),
        (b"{}", "Column 'ts' is missing or null: a row whose time is null is rejected"),
        (b'{"ts":null}', "a row whose time is null is rejected"),
        (b'{"ts":"soon"}', "Column 'ts'"), (b'{"ts":9999999999999999}', "years 1 to 9999"),
    ],
)  # fmt: skip
def test_hostile_messages_are_rejected(payload: bytes | None, part: str) -> None:
    assert part in reason(Decoder(table(ORDERS)).decode(payload))


def test_what_is_odd_and_allowed() -> None:
    decoder = Decoder(table(ORDERS))
    assert good(decoder.decode(b' \r\n{"ts":1,"ts":2}\t')).time_ms == 2, "the last of two equal keys wins"
    nested = b'{"ts":1,"order_status":' + b"[" * 199 + b"]" * 199 + b"}"
    assert good(decoder.decode(nested)).values[2] == "[" * 199 + "]" * 199
    brackets = b'{"ts":1,"order_status":"' + b'[{\\"' * 500 + b'"}'
    assert good(decoder.decode(brackets)).values[2] == '[{"' * 500, "brackets in a text do not nest"


def test_depth_is_judged_alike_however_deep_the_caller_stands() -> None:
    decoder = Decoder(table(ORDERS))
    payload = b'{"ts":1,"order_status":' + b"[" * 199 + b"]" * 199 + b"}"

    def dive(levels: int) -> Decoded | Rejected:
        return decoder.decode(payload) if levels == 0 else dive(levels - 1)

    assert dive(0) == dive(300)


def test_missing_and_null_become_the_default_or_stay_null() -> None:
    columns = {"a": "INT", "b": "STRING"}
    for payload in (b"{}", b'{"a":null,"b":null}'):
        assert good(Decoder(table(columns, time={})).decode(payload)) == Decoded((-(2**31), "null"), None, False)
        assert good(Decoder(table(columns, time={}, nulls=True)).decode(payload)).values == (None, None)


def test_several_values() -> None:
    assert good(one("INT", '[1,"2",null]', many=True)).values == ([1, 2, -(2**31)],)
    assert good(one("INT", "5", many=True)).values == ([5],)
    assert good(one("STRING", '[["a"],{"b":1}]', many=True)).values == (['["a"]', '{"b":1}'],)
    for text in ("null", "[]"):
        assert good(one("STRING", text, many=True)).values == (["null"],)
        assert good(one("STRING", text, many=True, nulls=True)).values == (None,)
    assert "Every element must be an INT" in reason(one("INT", '[1,"x"]', many=True))


def test_keys_and_delete_markers() -> None:
    upsert = {"mode": "FULL", "comparisonColumn": "v", "deleteRecordColumn": "gone"}
    spec = table({"id": "INT", "v": "LONG", "gone": "BOOLEAN"}, key=("id",), upsert=upsert)
    decoder = Decoder(spec)
    assert good(decoder.decode(b'{"id":1,"v":2,"gone":"true","ts":3}')).is_delete
    assert not good(decoder.decode(b'{"id":1,"v":2,"ts":3}')).is_delete
    assert "part of the primary key" in reason(decoder.decode(b'{"v":2,"ts":3}'))
    assert "newest" in reason(decoder.decode(b'{"id":1,"v":null,"ts":3}'))
    keyless = Decoder(table({"id": "INT"}, key=("id",)))
    assert good(keyless.decode(b'{"ts":3}')).values[0] == -(2**31), "without upsert the key is not needed"


@pytest.mark.parametrize(
    ("form", "data_type", "text", "millis"),
    [
        ("1:SECONDS:EPOCH", "INT", "1632463351", 1632463351000),
        ("1:DAYS:SIMPLE_DATE_FORMAT:yyyyMMdd", "INT", "20210924", 1632441600000),
        ("SIMPLE_DATE_FORMAT|yyyy-MM-dd", "STRING", '"2021-09-24"', 1632441600000),
        ("TIMESTAMP", "TIMESTAMP", '"2021-09-24T06:02:31.123456Z"', 1632463351123),
        ("EPOCH|MILLISECONDS", "STRING", '"1632463351000"', 1632463351000),
    ],
)
def test_time_formats(form: str, data_type: str, text: str, millis: int) -> None:
    decoder = Decoder(table({}, time={"name": "ts", "dataType": data_type, "format": form}))
    assert good(decoder.decode(f'{{"ts":{text}}}'.encode())).time_ms == millis
    assert "'ts'" in reason(decoder.decode(b'{"ts":"2021/09/24"}'))


def test_records_of_files() -> None:
    columns = {"i": "INT", "l": "LONG", "s": "STRING", "d": "BIG_DECIMAL", "b": "BYTES", "t": "TIMESTAMP", "f": "FLOAT"}
    decoder = Decoder(table(columns, time={"name": "ts", "dataType": "INT", "format": "1:DAYS:EPOCH"}))
    moment = datetime(1970, 1, 2, tzinfo=UTC)
    parquet = {"i": 1, "l": moment, "s": moment, "d": Decimal("1.5"), "b": b"x", "t": moment, "f": math.nan}
    row = good(decoder.convert({**parquet, "ts": date(1970, 1, 3)}))
    assert row.values[:6] == (1, 86_400_000, "1970-01-02 00:00:00.000", Decimal("1.5"), b"x", moment)
    assert row.values[7] == 2 and row.time_ms == 172_800_000
    texts = {"i": "1", "l": "2", "s": "x", "d": "1.50", "b": "ff", "t": "1970-01-02", "f": "0.5", "ts": "3"}
    row = good(decoder.convert(texts))
    assert row.values == (1, 2, "x", Decimal("1.5"), b"\xff", moment, 0.5, 3)
    assert "a value of type object does not fit" in reason(decoder.convert({"i": object(), "ts": 1}))
    assert decoder.unknown_columns({"i": 1, "x": 2, "ts": 3, "a": 4}) == ("x", "a")


def test_batches_and_arrow() -> None:
    spec = table({"a": "INT", "m": "STRING", "d": "BIG_DECIMAL"}, many=("m",))
    decoder = pickle.loads(pickle.dumps(Decoder(spec)))
    batch = decoder.decode_batch([b'{"a":1,"m":["x","y"],"d":1.5,"ts":5}', None, b'{"ts":6}'])
    assert batch.columns == [[1, None, -(2**31)], [["x", "y"], None, ["null"]], [Decimal("1.5"), None, 0], [5, None, 6]]
    assert batch.times_ms == [5, None, 6] and batch.deletes == [False] * 3
    assert batch.reasons[0] is None and batch.reasons[1] is not None and batch.reasons[2] is None
    arrays = pa.Table.from_arrays(to_arrow(spec, batch.columns), schema=arrow_schema(spec))
    assert arrays.num_rows == 3 and arrays.schema.names == ["a", "m", "d", "ts"]
    empty = decoder.decode_batch([])
    assert empty.columns == [[], [], [], []] and to_arrow(spec, empty.columns)[0].type == pa.int32()


EVERY_TYPE = {
    "i": "INT", "l": "LONG", "f": "FLOAT", "d": "DOUBLE", "n": "BIG_DECIMAL", "b": "BOOLEAN", "t": "TIMESTAMP",
    "s": "STRING", "j": "JSON", "x": "BYTES", "m": "STRING",
}  # fmt: skip
WIDE = table(EVERY_TYPE, many=("m",))
WIDE_DECODER = Decoder(WIDE)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.decimals().map(str),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=3), below, max_size=3),
    max_leaves=6,
)


@given(st.binary())
def test_no_bytes_raise(payload: bytes) -> None:
    assert isinstance(WIDE_DECODER.decode(payload), (Decoded, Rejected))


@pytest.mark.slow
@settings(max_examples=examples(300))
@given(st.dictionaries(st.sampled_from([*EVERY_TYPE, "ts", "other"]), json_values))
def test_any_record_is_a_row_that_arrow_takes_or_a_reason_that_utf8_holds(record: dict[str, object]) -> None:
    payload = json.dumps(record).encode()
    result = WIDE_DECODER.decode(payload)
    assert result == WIDE_DECODER.decode(payload) or "NaN" in repr(result) or "nan" in repr(result)
    for outcome in (result, WIDE_DECODER.convert(record)):
        if isinstance(outcome, Rejected):
            assert reason(outcome)
        else:
            to_arrow(WIDE, [[value] for value in outcome.values])


@given(st.integers(0, 10**12), json_values)
def test_one_wide_column_with_a_good_time(millis: int, value: object) -> None:
    outcomes = [WIDE_DECODER.convert({name: value, "ts": millis}) for name in EVERY_TYPE]
    decoded = [outcome for outcome in outcomes if isinstance(outcome, Decoded)]
    assert all(outcome.time_ms == millis for outcome in decoded)
    if decoded:
        to_arrow(WIDE, [list(column) for column in zip(*(outcome.values for outcome in decoded), strict=True)])
