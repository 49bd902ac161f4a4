"""What is read of Kafka once more: no stream whose messages may hold several records."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from hybrid.config.table_config import Half, Records, StreamConfig, TableSpec
from hybrid.errors import SpecError
from hybrid.formats.avro_messages import AvroMessages
from hybrid.formats.csv_format import CsvFormat
from hybrid.ingest import refetch as again
from hybrid.ingest.refetch import held_rows
from hybrid.records.decode import Decoder
from hybrid.records.outcome import Decoded, Rejected
from hybrid.schema.ingestion import ComplexTypes, IngestionConfig
from hybrid.table.state import Act, RealtimeState
from tests.records.test_decode import table

STATE = RealtimeState(Act("create-0", 0, "create", "2021-11-21T00:00:00.000+00:00"), {}, {})
NOWHERE = cast(Any, None)
AVRO = AvroMessages('{"type": "record", "name": "r", "fields": [{"name": "ts", "type": "long"}]}')
CSV = CsvFormat(columns=("name", "ts"))


def made(stream: StreamConfig, nested: ComplexTypes | None = None) -> TableSpec:
    config = {Half.REALTIME: IngestionConfig(complex_types=nested)} if nested else {}
    return replace(table({"name": "STRING"}), stream=stream, ingestion=config)


@pytest.mark.parametrize(
    ("stream", "nested"),
    [
        (StreamConfig(("t",), "b", codec=CSV), None),
        (StreamConfig(("t",), "b", records=Records.LINES), None),
        (StreamConfig(("t",), "b", records=Records.ARRAY), None),
        (StreamConfig(("t",), "b"), ComplexTypes(unnest=("items",))),
        (StreamConfig(("t",), "b", codec=AVRO), ComplexTypes(unnest=("items",))),
    ],
    ids=["csv", "lines", "arrays", "unnested", "unnested avro"],
)
def test_messages_that_may_hold_several_records_are_refused(stream, nested):
    with pytest.raises(SpecError, match="may hold several records, of which some are rejected and others in 't'"):
        held_rows(NOWHERE, made(stream, nested), STATE)


@pytest.mark.parametrize(
    ("stream", "nested"),
    [
        (StreamConfig(("t",), "b"), None),
        (StreamConfig(("t",), "b", codec=AVRO), None),
        (StreamConfig(("t",), "b"), ComplexTypes()),
    ],
    ids=["json", "avro", "flattened"],
)
def test_messages_of_one_record_are_read(stream, nested, monkeypatch):
    class Asked(Exception):
        pass

    def ask(*_: object, **__: object) -> None:
        raise Asked

    monkeypatch.setattr(again, "require_topics", ask)
    with pytest.raises(Asked):
        held_rows(NOWHERE, made(stream, nested), STATE)


def test_a_message_may_be_a_row_and_rejected():
    good, bad = Decoder(made(StreamConfig(("t",), "b", codec=CSV))).decode_all(b"ada,1\nbob\n", 1)
    assert isinstance(good, Decoded) and isinstance(bad, Rejected)
    spec = made(StreamConfig(("t",), "b"), ComplexTypes(unnest=("items",)))
    payload = b'{"ts": 1, "items": [{"name": "ada"}, {"ts": 2}]}'
    assert len(Decoder(spec).decode_all(payload, 1)) == 2
    assert spec.holds_several(Half.REALTIME) and not spec.holds_several(Half.OFFLINE)
