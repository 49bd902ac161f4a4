"""Messages that are more, or other, than one JSON object: the same rows from the tail, commits and replays."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from kafka import KafkaProducer

from hybrid.config.table_config import Half
from hybrid.formats.csv_format import CsvFormat
from hybrid.operations.rejected_rows import read_rejected
from hybrid.schema.ingestion import ComplexTypes, IngestionConfig
from hybrid.schema.schema import FieldKind, FieldSpec
from hybrid.schema.types import DataType
from tests.cases.tables import FIELDS

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

BESIDE = tuple(
    FieldSpec(name, kind, FieldKind.DIMENSION, default_null=default)
    for name, kind, default in [
        ("__key", DataType.STRING, "null"), ("__header$trace", DataType.STRING, "null"),
        ("__metadata$offset", DataType.LONG, -1), ("__metadata$recordTimestamp", DataType.LONG, -1),
    ]
)  # fmt: skip


def send(table, value, key=None, headers=(), timestamp_ms=0):
    producer = KafkaProducer(bootstrap_servers=table.spec.stream.brokers, acks="all")
    try:
        producer.send(
            table.spec.stream.topics[0], value, key, headers=list(headers), partition=0, timestamp_ms=timestamp_ms
        ).get(10)
    finally:
        producer.close()


def with_stream(table, **changes):
    table.spec = replace(table.spec, stream=replace(table.spec.stream, **changes))


def test_keys_and_headers_are_columns_of_the_tail_of_commits_and_of_replays(new_table):
    table = new_table(fields=(*FIELDS, *BESIDE))
    with_stream(table, metadata=True)
    send(table, b'{"id": 1, "ts": 1}', b"k1", [("trace", b"a")], 11)
    send(table, b'{"id": 2, "ts": 2, "value": "much"}', b"k2", [("trace", b"b")], 12)
    send(table, b'{"id": 3, "ts": 3}', None, [], 13)
    send(table, None, b"gone", [], 14)
    sql = 'select id, "__key", "__header$trace", "__metadata$offset", "__metadata$recordTimestamp" from t order by id'
    expected = [(1, "k1", "a", 0, 11), (3, "null", "null", 2, 13)]
    assert table.query(sql) == expected
    table.ingest()
    assert table.query(sql) == expected
    assert table.rejected() == {(0, 1), (0, 3)}
    files = [file.path for file in table.half(Half.REALTIME).files if file.segment == "t__rejected"]
    shown = read_rejected(files, 10)
    assert [row["value"] for row in shown] == ['{"id": 2, "ts": 2, "value": "much"}', None]
    table.lenient().replay()
    assert table.query(sql) == [expected[0], (2, "k2", "b", 1, 12), expected[1]]
    table.move()
    assert table.query(sql) == [expected[0], (2, "k2", "b", 1, 12), expected[1]]


def test_nested_messages_and_rows_of_csv_become_rows(new_table):
    table = new_table()
    config = IngestionConfig(complex_types=ComplexTypes(("rows",), renames={"rows.": "", "head.": ""}))
    table.spec = replace(table.spec, ingestion={Half.REALTIME: config})
    table.produce({"head": {"key": "a"}, "ts": 1, "rows": [{"id": 1}, {"id": 2}, {"id": "x"}]}, {"ts": 2, "id": 3})
    assert table.query("select id, key from t order by id") == [(1, "a"), (2, "a"), (3, "null")]
    table.ingest()
    assert table.query("select id, key from t order by id") == [(1, "a"), (2, "a"), (3, "null")]
    assert table.rejected() == {(0, 0)}
    with_stream(table, codec=CsvFormat(columns=("id", "key", "ts")))
    table.produce(b"4,b,4\n5,c\n", json.dumps({"id": 6}).encode())
    assert table.queried() == [1, 2, 3, 4]
    table.ingest()
    assert table.queried() == table.visible() == [1, 2, 3, 4]
    assert table.rejected() == {(0, 0), (0, 2), (0, 3)}
