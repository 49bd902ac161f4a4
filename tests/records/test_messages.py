"""Messages as wholes: what a rejected row keeps of one, and its key, headers and coordinates as fields."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from hybrid.config.table_config import StreamConfig
from hybrid.records.decode import Decoder
from hybrid.records.messages import Message, MessageFields, pack, unpack
from hybrid.records.outcome import Decoded, Rejected
from tests.records.test_decode import table

bytes_or_none = st.none() | st.binary(max_size=8) | st.just(b"\x00hybrid message\x00") | st.just(b"\x00\x01")


@given(bytes_or_none, bytes_or_none, st.lists(st.tuples(st.text(max_size=3), bytes_or_none), max_size=3))
def test_what_is_packed_is_unpacked(value, key, headers):
    message = Message(value, key, tuple(headers))
    assert unpack(pack(message)) == message


@given(st.binary(max_size=40))
def test_bytes_that_nobody_packed_are_a_value(tail):
    raw = b"\x00hybrid message\x00" + tail
    assert unpack(raw) == Message(raw) or pack(unpack(raw)) is not None
    assert unpack(tail).value == tail or tail.startswith(b"\x00hybrid message\x00")


def test_a_plain_message_is_kept_as_it_is():
    assert pack(Message(b"{")) == b"{"
    assert pack(Message(None)) is None


META = {"__key": "STRING", "__header$trace": "STRING", "__metadata$offset": "LONG", "__metadata$partition": "INT",
        "__metadata$recordTimestamp": "LONG", "__header$raw": "BYTES", "id": "INT"}  # fmt: skip


def metadata_table(**columns):
    made = table({**META, **columns})
    return replace(made, stream=StreamConfig(("t",), "b", metadata=True))


def test_key_headers_and_coordinates_are_columns():
    made = metadata_table()
    message = Message(
        b'{"id": 1, "ts": 5, "__key": "forged"}',
        b"k",
        (("trace", b"a"), ("trace", b"b"), ("raw", b"\xff")),
        3,
        42,
        7,
    )
    found = Decoder(made).decode_batch([message.value], [7], [message])
    row = dict(zip(made.schema.column_names, (column[0] for column in found.columns), strict=True))
    assert row["__key"] == "k" and row["__header$trace"] == "b" and row["__header$raw"] == b"\xff"
    assert (row["__metadata$offset"], row["__metadata$partition"], row["__metadata$recordTimestamp"]) == (42, 3, 7)


def test_a_key_that_is_not_utf8_rejects_the_row_of_a_column_that_needs_it():
    """With replacement characters two keys would be one, and hide each other's rows."""
    value = b'{"id": 1, "ts": 5}'
    texts, message = metadata_table(), Message(value, b"caf\xe9")
    for outcome in (Decoder(texts).decode(value, 7, message), Decoder(texts).decode(value, 7, unpack(pack(message)))):
        assert isinstance(outcome, Rejected)
        assert outcome.reason.startswith("Column '__key': \"caf\\udce9\" does not fit")
    assert isinstance(Decoder(texts).decode(value, 7, Message(value, b"k", (("other", b"\xe9"),))), Decoded)
    binary = metadata_table(**{"__key": "BYTES"})
    found = Decoder(binary).decode(value, 7, message)
    assert isinstance(found, Decoded) and found.values[binary.schema.column_names.index("__key")] == b"caf\xe9"


def test_without_metadata_populate_they_are_fields_like_any_other():
    made = table(META)
    found = Decoder(made).decode(b'{"id": 1, "ts": 5, "__key": "own"}', 7, Message(b"", b"other"))
    assert isinstance(found, Decoded) and found.values[made.schema.column_names.index("__key")] == "own"


def test_a_header_that_does_not_fit_rejects_the_row():
    made = metadata_table(**{"__header$n": "INT"})
    found = Decoder(made).decode(b'{"id": 1, "ts": 5}', 7, Message(b"", None, (("n", b"x"),)))
    assert isinstance(found, Rejected) and "Column '__header$n'" in found.reason
    fields = MessageFields(made.schema).of(Message(None, None, (("n", None),)))
    assert fields == {"__header$n": None}
