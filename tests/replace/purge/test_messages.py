"""What a purge reads of rejected messages that are more, or other, than JSON objects."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hybrid.config.table_config import Half, StreamConfig
from hybrid.formats.csv_format import CsvFormat
from hybrid.records.messages import Message, pack
from hybrid.replace.purge.rejected import MessageReader, _read_batch
from hybrid.schema.ingestion import ComplexTypes, IngestionConfig
from tests.records.test_decode import table

COLUMNS = {"__key": "STRING", "name": "STRING", "head.name": "STRING"}

UNREAD = ({}, False)


def reader(*reads, stream, nested=False):
    config = {Half.REALTIME: IngestionConfig(complex_types=ComplexTypes())} if nested else {}
    return MessageReader(replace(table(COLUMNS), stream=stream, ingestion=config), reads, ("ada",))


@pytest.mark.parametrize("key", [b"ada", b"x ada", b"ada\x00"])
def test_a_key_is_read_and_its_words_are_found(key):
    made = reader("__key", stream=StreamConfig(("t",), "b", metadata=True))
    raw = pack(Message(b'{"name": 5}', key, (("trace", None),)))
    assert made.names(raw) and made.records(raw, 0) == [({"__key": key.decode()}, True)]
    assert made.names(pack(Message(b"{", b"k", (("trace", b"ada"),))))
    assert not made.names(pack(Message(b"{", b"adaline")))
    assert made.records(pack(Message(None, b"ada")), 0) == [UNREAD], "undecided: its words tell"


def test_rows_of_csv_and_nested_records():
    made = reader("name", stream=StreamConfig(("t",), "b", codec=CsvFormat(columns=("name", "ts"))))
    assert made.records(b"ada,x\nbob,y\n", 0) == [({"name": "ada"}, True), ({"name": "bob"}, True)]
    assert made.records(b"\xff", 0) == [UNREAD]
    made = reader("head.name", stream=StreamConfig(("t",), "b"), nested=True)
    assert made.records(b'{"head": {"name": "ada"}, "ts": "x"}', 0) == [({"head.name": "ada"}, True)]


@pytest.mark.parametrize("unread", [b"ada,2,extra\n", b'"ada,2\n', b'"ada"x,2\n', b"ada\n"])
def test_a_row_of_csv_that_cannot_be_read_leaves_its_message_undecided(unread):
    made = reader("name", stream=StreamConfig(("t",), "b", codec=CsvFormat(columns=("name", "ts"))))
    payload = b"bob,1\n" + unread
    assert made.records(payload, 0) == [({"name": "bob"}, True), UNREAD], "the readable row does not tell of the other"
    assert made.names(payload), "its words do"


@pytest.mark.parametrize("payload", [b"{", b"5", b"[]", b'"ada"'])
def test_json_that_is_no_object_is_not_read(payload):
    assert reader("name", stream=StreamConfig(("t",), "b")).records(payload, 0) == [UNREAD]


def test_a_message_with_a_part_that_cannot_be_read_is_not_told():
    import pyarrow as pa

    spec = replace(table(COLUMNS), stream=StreamConfig(("t",), "b", codec=CsvFormat(columns=("name", "ts"))))
    batch = pa.record_batch({"raw": ["d"], "value": [b"bob,1\nada,2,extra\n"], "at": [0]})
    read = _read_batch(batch, spec, MessageReader(spec, ("name",), ("ada",)))
    assert [row["_hy_told"] for row in read.to_pylist()] == [True, False], "the lowest is asked, and nulls do not count"
