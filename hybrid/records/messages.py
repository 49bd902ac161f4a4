"""A whole Kafka message: its value, key, headers and coordinates.

A table can read all of them as columns, as with Pinot's `metadata.populate`. A rejected row then keeps value, key and
headers in its raw bytes, so that a replay reads what ingestion read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hybrid.schema.schema import Schema
from hybrid.schema.types import DataType

KEY, HEADER, METADATA = "__key", "__header$", "__metadata$"
_COORDINATES = ("partition", "offset", "recordTimestamp")
_MARK = b"\x00hybrid message\x00"
_LENGTH = struct.Struct(">I")
_NOTHING, _THERE = b"\x00", b"\x01"

Headers = Sequence[tuple[str, bytes | None]]


class Message(NamedTuple):
    """A Kafka message; `headers` are in their order, `timestamp_ms` is Kafka's. None: not known."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    partition: int | None = None
    offset: int | None = None
    timestamp_ms: int | None = None


class MessageFields:
    """The fields that a message adds to its record, by Pinot's names. Texts are UTF-8; columns of BYTES hold bytes.

    Bytes that are not UTF-8 become unpaired surrogates, which no column stores: a row that needs them is rejected. As
    replacement characters, two keys would become one.
    """

    def __init__(self, schema: Schema) -> None:
        self._binary = frozenset(field.name for field in schema.fields if field.data_type is DataType.BYTES)

    def of(self, message: Message) -> dict[str, object]:
        """The fields of a message. The last of several headers of a name counts; a header without a value is null."""
        fields: dict[str, object] = {
            f"{METADATA}{name}": value
            for name, value in zip(_COORDINATES, message[-len(_COORDINATES) :], strict=True)
            if value is not None
        }
        for name, value in message.headers:
            fields[f"{HEADER}{name}"] = self._value(f"{HEADER}{name}", value)
        if message.key is not None:
            fields[KEY] = self._value(KEY, message.key)
        return fields

    def _value(self, name: str, value: bytes | None) -> object:
        return value if value is None or name in self._binary else value.decode("utf-8", "surrogateescape")


def pack(message: Message) -> bytes | None:
    """The raw bytes that a rejected row keeps: the value alone when there is neither key nor header.

    Parts are stored unchanged between bytes that are no letters, so that a search finds the words in them.
    """
    value = message.value
    if message.key is None and not message.headers and not (value is not None and value.startswith(_MARK)):
        return value
    parts = [value, message.key]
    for name, content in message.headers:
        parts += [name.encode("utf-8", "surrogatepass"), content]
    return _MARK + b"".join(
        _NOTHING if part is None else _THERE + _LENGTH.pack(len(part)) + _NOTHING + part for part in parts
    )


def unpack(raw: bytes | None) -> Message:
    """The inverse of `pack`: value, key and headers."""
    if raw is None or not raw.startswith(_MARK):
        return Message(raw)
    try:
        value, key, *others = _parts(raw)
    except (ValueError, struct.error):
        return Message(raw)
    names = [(name or b"").decode("utf-8", "surrogatepass") for name in others[::2]]
    return Message(value, key, tuple(zip(names, others[1::2], strict=False)))


def _parts(raw: bytes) -> Iterator[bytes | None]:
    at = len(_MARK)
    while at < len(raw):
        if raw[at : at + 1] == _NOTHING:
            yield None
            at += 1
            continue
        (size,) = _LENGTH.unpack_from(raw, at + 1)
        start = at + 2 + _LENGTH.size
        if raw[at : at + 1] != _THERE or start + size > len(raw):
            raise ValueError(raw)
        yield raw[start : start + size]
        at = start + size
