"""Messages of CSV and Avro: as rows, or as the reason why not; whatever their bytes."""

import io
import json
import pickle
from dataclasses import replace

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.config.table_config import Half, StreamConfig
from hybrid.formats.avro_messages import AvroMessages
from hybrid.formats.csv_cells import Dialect
from hybrid.formats.csv_format import CsvFormat
from hybrid.records.codecs import records_of
from hybrid.records.decode import Decoder
from hybrid.records.outcome import Decoded, Rejected
from hybrid.schema.ingestion import ComplexTypes, IngestionConfig
from tests.examples import examples
from tests.records.test_decode import table

SCHEMA = {
    "type": "record", "name": "r", "fields": [
        {"name": "id", "type": "int"},
        {"name": "name", "type": ["null", "string"], "default": None},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
        {"name": "at", "type": {"type": "record", "name": "at", "fields": [{"name": "x", "type": "double"}]}},
    ],
}  # fmt: skip
AVRO = AvroMessages(json.dumps(SCHEMA))
RECORD = {"id": 7, "name": None, "ts": 1_632_463_351_000, "tags": ["a"], "at": {"x": 0.5}}


def avro(record, prefix=b""):
    file = io.BytesIO()
    fastavro.schemaless_writer(file, SCHEMA, record)
    return prefix + file.getvalue()


def with_codec(codec, columns, **more):
    made = table(columns)
    return replace(made, stream=StreamConfig(("t",), "b", codec=codec), **more)


def reasons(found):
    return [one.reason for one in found if isinstance(one, Rejected)]


def test_rows_of_csv_in_one_message():
    form = CsvFormat(columns=("id", "name", "ts"), null="-")
    made = with_codec(form, {"id": "INT", "name": "STRING"})
    found = Decoder(made).decode_all(b'1,"a,b",5\n2,-,6\nx,c,7\n8,9\n', 1)
    rows = [one for one in found if isinstance(one, Decoded)]
    names = made.schema.column_names
    assert [(row.values[names.index("id")], row.values[names.index("name")]) for row in rows] == [
        (1, "a,b"),
        (2, "null"),
    ]
    first, second = reasons(found)
    assert first.startswith("Record 3 of 4: Column 'id'") and second == (
        "Record 4 of 4: The row has 2 cells where the header has 3."
    )


def test_csv_with_a_header_in_each_message():
    made = with_codec(CsvFormat(Dialect(delimiter=";")), {"id": "INT"})
    [row] = Decoder(made).decode_all(b"\xef\xbb\xbfts;id\n5;1\n", 1)
    assert isinstance(row, Decoded) and set(row.values) == {5, 1}
    assert reasons(Decoder(made).decode_all(b"ts;id\n", 1)) == ["The message holds no row of CSV."]


@pytest.mark.parametrize("payload", [b"", b"\xff", b'"', b'a"b"\n"', None, b"\r", b"\x00", b"\n\n", b'"1,2', b",,,\n,"])
@pytest.mark.parametrize("codec", [CsvFormat(), CsvFormat(columns=("id", "ts")), AVRO, replace(AVRO, skips=5)])
def test_hostile_messages_are_rejected_with_a_reason(codec, payload):
    found = Decoder(with_codec(codec, {"id": "INT"})).decode_all(payload, 1)
    assert found and all(isinstance(one, Rejected) and one.reason for one in found)


@settings(max_examples=examples(300))
@given(
    st.binary(max_size=30),
    st.sampled_from([CsvFormat(), CsvFormat(columns=("id", "ts")), AVRO, replace(AVRO, skips=5)]),
)
def test_no_bytes_raise(payload, codec):
    assert records_of(payload, codec)
    assert Decoder(with_codec(codec, {"id": "INT", "tags": "STRING"})).decode_all(payload, 1)


@settings(max_examples=examples(200))
@given(st.integers(0, 30), st.integers(0, 255))
def test_a_damaged_avro_message_is_a_row_or_rejected(place, byte):
    payload = bytearray(avro(RECORD))
    payload[place % len(payload)] = byte
    Decoder(with_codec(AVRO, {"id": "INT"})).decode_all(bytes(payload), 1)
    assert reasons(Decoder(with_codec(AVRO, {"id": "INT"})).decode_all(avro(RECORD)[:-1], 1))
    assert (
        "1 bytes follow" in reasons(Decoder(with_codec(AVRO, {"id": "INT"})).decode_all(avro(RECORD) + b"\x00", 1))[0]
    )


def test_records_of_avro():
    config = {Half.REALTIME: IngestionConfig(complex_types=ComplexTypes())}
    for codec, prefix in ((AVRO, b""), (replace(AVRO, skips=5), b"\x00\x00\x00\x00\x07")):
        made = with_codec(codec, {"id": "INT", "name": "STRING", "at.x": "DOUBLE"}, ingestion=config)
        [row] = pickle.loads(pickle.dumps(Decoder(made))).decode_all(avro(RECORD, prefix), 1)
        values = dict(zip(made.schema.column_names, row.values, strict=True))
        assert (values["id"], values["name"], values["at.x"], row.time_ms) == (7, "null", 0.5, RECORD["ts"])
    assert "registry's mark" in reasons(Decoder(made).decode_all(avro(RECORD), 1))[0]


@pytest.mark.parametrize(
    ("text", "words"), [("{", "is no schema of Avro"), ('"int"', "is no schema of records"), ("[]", "no schema")]
)
def test_schemas_that_are_none(text, words):
    assert words in (AvroMessages(text).check() or "")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (["null", "r"], "a type that holds itself ('r')"),
        (
            {"type": "map", "values": {"type": "record", "name": "s", "fields": [{"name": "r", "type": ["r"]}]}},
            "itself",
        ),
        ({"type": "array", "items": "null"}, "elements take no bytes"),
        (
            {"type": "array", "items": {"type": "record", "name": "e", "fields": [{"name": "n", "type": "null"}]}},
            "no bytes",
        ),
        ({"type": "array", "items": {"type": "fixed", "name": "f", "size": 0}}, "no bytes"),
    ],
)
def test_schemas_whose_messages_could_end_the_reader(kind, words):
    schema = {"type": "record", "name": "r", "fields": [{"name": "x", "type": kind}]}
    assert words in (AvroMessages(json.dumps(schema)).check() or "")


def test_a_named_type_may_come_again():
    point = {"type": "record", "name": "n.point", "fields": [{"name": "x", "type": "int"}]}
    fields = [{"name": "a", "type": point}, {"name": "b", "type": ["null", "n.point"]}]
    fields.append({"name": "c", "type": {"type": "array", "items": "n.point"}})
    made = AvroMessages(json.dumps({"type": "record", "name": "r", "fields": fields}))
    assert made.check() is None and AVRO.check() is None


@pytest.mark.slow
def test_a_hostile_message_of_csv_takes_no_longer_than_its_bytes():
    """Each of these took hours or minutes: a look at all the line for each of its cells."""
    names = ",".join(f"c{number}" for number in range(300_000)).encode()
    assert "no row of CSV" in reasons(Decoder(with_codec(CsvFormat(), {"id": "INT"})).decode_all(names, 1))[0]
    assert "names column 'c7' twice" in reasons(records_of(names + b",c7", CsvFormat()))[0]
    made = with_codec(CsvFormat(columns=("id", "ts")), {"id": "INT"})
    for cells in (b'"a" ,' * 300_000, b'"a",' + b"b," * 300_000):
        assert reasons(Decoder(made).decode_all(cells + b"\r\n", 1))[0].startswith("The row has 30000")
