"""What a purge reads of rejected messages that are more, or other, than JSON objects."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hybrid.replace.purge.rejected import MessageReader
from hybrid.spec.csvformat import CsvFormat
from hybrid.spec.ingestion import ComplexTypes, IngestionConfig
from hybrid.spec.table_config import Half, StreamConfig
from hybrid.table.messages import Message, pack
from tests.table.test_decode import table

COLUMNS = {"__key": "STRING", "name": "STRING", "head.name": "STRING"}


def reader(*reads, stream, nested=False):
    config = {Half.REALTIME: IngestionConfig(complex_types=ComplexTypes())} if nested else {}
    return MessageReader(replace(table(COLUMNS), stream=stream, ingestion=config), reads, ("ada",))


@pytest.mark.parametrize("key", [b"ada", b"x ada", b"ada\x00"])
def test_a_key_is_read_and_its_words_are_found(key):
    made = reader("__key", stream=StreamConfig("t", "b", metadata=True))
    raw = pack(Message(b'{"name": 5}', key, (("trace", None),)))
    assert made.names(raw) and made.records(raw, 0) == [({"__key": key.decode()}, True)]
    assert made.names(pack(Message(b"{", b"k", (("trace", b"ada"),))))
    assert not made.names(pack(Message(b"{", b"adaline")))
    assert made.records(pack(Message(None, b"ada")), 0) == [], "undecided: its words tell"


def test_rows_of_csv_and_nested_records():
    made = reader("name", stream=StreamConfig("t", "b", codec=CsvFormat(columns=("name", "ts"))))
    assert made.records(b"ada,x\nbob,y\n", 0) == [({"name": "ada"}, True), ({"name": "bob"}, True)]
    assert made.records(b"\xff", 0) == []
    made = reader("head.name", stream=StreamConfig("t", "b"), nested=True)
    assert made.records(b'{"head": {"name": "ada"}, "ts": "x"}', 0) == [({"head.name": "ada"}, True)]
