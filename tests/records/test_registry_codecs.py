"""Messages framed by a schema registry: as rows, as the reason why not, or RegistryError, whatever their bytes.

The registry here answers Confluent's API from a dict; `tests/ingest/test_registry.py` has a real one.
"""

import io
import json
import pickle
import struct
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.errors import RegistryError
from hybrid.formats.registry_messages import RegistryFormat, RegistryMessages
from hybrid.records.codecs import records_of
from hybrid.records.decode import Decoder
from hybrid.records.outcome import Decoded, Rejected
from tests.examples import examples
from tests.records.test_codecs import with_codec

WRITER = {
    "type": "record", "name": "r",
    "fields": [{"name": "id", "type": "int"}, {"name": "old", "type": "string"}, {"name": "gone", "type": "string"}],
}  # fmt: skip
READER = {
    "type": "record", "name": "r",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "new", "aliases": ["old"], "type": "string"},
        {"name": "extra", "type": "string", "default": "x"},
    ],
}  # fmt: skip
PLACE = {"type": "record", "name": "Place", "namespace": "n", "fields": [{"name": "city", "type": "string"}]}
REFERS = {
    "type": "record", "name": "Visit", "namespace": "n",
    "fields": [{"name": "id", "type": "int"}, {"name": "at", "type": "n.Place"}],
}  # fmt: skip
RECURSIVE = {
    "type": "record", "name": "t",
    "fields": [{"name": "v", "type": "int"}, {"name": "next", "type": ["null", "t"]}],
}  # fmt: skip
SHAPE = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}


class Registry:
    """`schemas` are what `/schemas/ids/N` answers; `status` stands in for every answer where it is set."""

    def __init__(self) -> None:
        self.schemas: dict[int, dict[str, Any]] = {
            1: {"schema": json.dumps(WRITER)},
            2: {"schema": json.dumps(SHAPE), "schemaType": "JSON"},
            3: {"schema": json.dumps(REFERS), "references": [{"name": "n.Place", "subject": "place", "version": 1}]},
            4: {"schema": json.dumps(RECURSIVE)},
            5: {"schema": "{"},
            6: {"schema": 'syntax = "proto3";', "schemaType": "PROTOBUF"},
        }
        self.status: int | None = None
        self.asked: list[str] = []
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.asked.append(self.path)
                status, answer = registry.answer(self.path)
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def answer(self, path: str) -> tuple[int, dict[str, Any]]:
        if self.status is not None:
            return self.status, {"error_code": self.status, "message": "no"}
        plain = path.partition("?")[0]
        if plain == "/subjects/place/versions/1":
            return 200, {"subject": "place", "version": 1, "id": 9, "schema": json.dumps(PLACE)}
        number = plain.rpartition("/")[2]
        if plain.startswith("/schemas/ids/") and int(number) in self.schemas:
            return 200, self.schemas[int(number)]
        return 404, {"error_code": 40403, "message": "Schema not found"}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def registry() -> Iterator[Registry]:
    made = Registry()
    yield made
    made.close()


def framed(number: int, record: Any, schema: Any = None) -> bytes:
    if schema is None:
        return struct.pack(">bI", 0, number) + json.dumps(record).encode()
    file = io.BytesIO()
    fastavro.schemaless_writer(file, fastavro.parse_schema(schema, named_schemas={}), record)
    return struct.pack(">bI", 0, number) + file.getvalue()


def reason(payload: bytes | None, messages: RegistryMessages) -> str:
    (found,) = records_of(payload, messages)
    assert isinstance(found, Rejected), found
    return found.reason


@pytest.mark.slow
def test_records_are_read_by_the_schema_they_were_written_with(registry: Registry) -> None:
    messages = RegistryMessages(registry.url)
    payload = framed(1, {"id": 7, "old": "a", "gone": "b"}, WRITER)
    for _ in range(3):
        assert records_of(payload, messages) == [{"id": 7, "old": "a", "gone": "b"}]
    assert len(registry.asked) == 1  # what an id stands for never changes


@pytest.mark.slow
def test_a_readers_schema_is_resolved_as_avro_says(registry: Registry) -> None:
    messages = RegistryMessages(registry.url, reader=json.dumps(READER))
    payload = framed(1, {"id": 7, "old": "a", "gone": "b"}, WRITER)
    assert records_of(payload, messages) == [{"id": 7, "new": "a", "extra": "x"}]


@pytest.mark.slow
def test_references(registry: Registry) -> None:
    whole = {**REFERS, "fields": [REFERS["fields"][0], {"name": "at", "type": PLACE}]}
    payload = framed(3, {"id": 1, "at": {"city": "Bern"}}, whole)
    assert records_of(payload, RegistryMessages(registry.url)) == [{"id": 1, "at": {"city": "Bern"}}]


@pytest.mark.slow
def test_json_schema(registry: Registry) -> None:
    messages = RegistryMessages(registry.url, RegistryFormat.JSON)
    assert records_of(framed(2, {"id": 1, "more": [1.5]}), messages) == [{"id": 1, "more": ["1.5"]}]
    assert records_of(framed(2, {"id": "one"}), messages) == [{"id": "one"}]  # checked only where it is asked for
    strict = RegistryMessages(registry.url, RegistryFormat.JSON, validates=True)
    assert records_of(framed(2, {"id": 1}), strict) == [{"id": 1}]
    assert "does not fit its schema 2 at $.id: rule 'type'" in reason(framed(2, {"id": "one"}), strict)
    assert "no JSON object" in reason(framed(2, [1]), messages)
    assert "is no JSON" in reason(framed(2, {})[:5] + b"\xff", messages)


@pytest.mark.slow
def test_what_belongs_to_the_message_rejects_it(registry: Registry) -> None:
    messages = RegistryMessages(registry.url)
    assert "no value" in reason(None, messages)
    assert "does not begin with a registry's mark" in reason(b'{"id": 1}', messages)
    assert "does not begin with a registry's mark" in reason(b"\0\0\0", messages)
    assert "its schema 77 is not in the registry" in reason(struct.pack(">bI", 0, 77), messages)
    assert "holds itself" in reason(struct.pack(">bI", 0, 4) + b"\0\0", messages)
    assert "its schema 5 is no schema of Avro" in reason(struct.pack(">bI", 0, 5), messages)
    assert "is one of PROTOBUF" in reason(struct.pack(">bI", 0, 6), messages)
    assert "is one of JSON" in reason(framed(2, {"id": 1}), messages)
    assert "follow the record" in reason(framed(1, {"id": 7, "old": "a", "gone": "b"}, WRITER) + b"!", messages)


def test_an_id_that_becomes_known(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    messages = RegistryMessages(registry.url)
    payload = framed(8, {"id": 7, "old": "a", "gone": "b"}, WRITER)
    assert "is not in the registry" in reason(payload, messages)
    asked = len(registry.asked)
    assert "is not in the registry" in reason(payload, messages) and len(registry.asked) == asked
    registry.schemas[8] = registry.schemas[1]
    monkeypatch.setattr("hybrid.formats.registry_messages.time.monotonic", lambda: 10.0**9)
    assert records_of(payload, messages) == [{"id": 7, "old": "a", "gone": "b"}]


@pytest.mark.slow
@pytest.mark.parametrize(("status", "words"), [(401, "refuses the table's credentials"), (500, "does not answer")])
def test_a_registry_that_fails_stops_the_reader(registry: Registry, status: int, words: str) -> None:
    registry.status = status
    with pytest.raises(RegistryError, match=words):
        records_of(framed(1, {"id": 7, "old": "a", "gone": "b"}, WRITER), RegistryMessages(registry.url))


@pytest.mark.slow
def test_a_registry_that_is_not_there(registry: Registry) -> None:
    registry.close()
    decoder = Decoder(with_codec(RegistryMessages(registry.url), {"id": "INT"}))
    with pytest.raises(RegistryError, match="does not answer"):
        decoder.decode_batch([framed(1, {"id": 7, "old": "a", "gone": "b"}, WRITER)])


@pytest.mark.slow
def test_rows(registry: Registry) -> None:
    spec = with_codec(RegistryMessages(registry.url), {"id": "INT"}, time_column=None)
    decoder = pickle.loads(pickle.dumps(Decoder(spec)))
    good, bad = framed(1, {"id": 7, "old": "a", "gone": "b"}, WRITER), b"{}"
    assert [type(one) for one in decoder.decode_all(good)] == [Decoded]
    assert [type(one) for one in decoder.decode_all(bad)] == [Rejected]


def test_no_secret_is_shown() -> None:
    assert "hush" not in repr(RegistryMessages("http://r", user_info="me:hush"))


@pytest.mark.slow
@settings(max_examples=examples(200))
@given(st.binary(max_size=60), st.integers(0, 7))
def test_hostile_bytes(hostile_registry: str, tail: bytes, number: int) -> None:
    for form in RegistryFormat:
        messages = RegistryMessages(hostile_registry, form, validates=True)
        for payload in (tail, struct.pack(">bI", 0, number) + tail):
            (found,) = records_of(payload, messages)
            assert isinstance(found, (dict, Rejected))


@pytest.fixture(scope="module")
def hostile_registry() -> Iterator[str]:
    made = Registry()
    yield made.url
    made.close()
