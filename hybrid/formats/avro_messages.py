"""Decodes Avro messages of a fixed schema, with or without the prefix of a schema registry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from io import BytesIO
from typing import Any
from uuid import UUID

_NANOS = ("long-timestamp-nanos", "long-local-timestamp-nanos")
_LEAST = {"null": 0, "float": 4, "double": 8}
# The length of a registry's prefix: a zero byte, and the schema's id.
REGISTRY_BYTES = 5


@dataclass(frozen=True)
class AvroMessages:
    """Messages of the schema in `text` (JSON). A prefix of `skips` bytes, the registry's, precedes each record."""

    text: str
    skips: int = 0

    @cached_property
    def _schema(self) -> Any:
        import fastavro

        return fastavro.parse_schema(json.loads(self.text))

    def __getstate__(self) -> dict[str, Any]:
        return {"text": self.text, "skips": self.skips}

    def check(self) -> str | None:
        """Why the schema cannot be used, as the end of a sentence; None when it is a valid schema of records."""
        try:
            schema = self._schema
        except Exception as error:  # the parser raises errors of many kinds: KeyError, UnknownType and others
            return f"is no schema of Avro ({type(error).__name__}: {str(error)[:100]})"
        if not isinstance(schema, dict) or schema.get("type") != "record":
            return "is no schema of records"
        try:
            _Sizes().least(schema)
        except ValueError as error:
            return str(error)
        return None

    def read(self, payload: bytes) -> dict[str, Any]:
        """The record in a message. ValueError when the bytes are not exactly a record of the schema."""
        if len(payload) < self.skips or (self.skips and payload[0] != 0):
            raise ValueError("it does not begin with a registry's mark and number")
        return read_record(payload, self.skips, self._schema)


class AvroSchemas:
    """Schemas that may refer to each other's types; a schema is parsed after those that it refers to."""

    def __init__(self) -> None:
        self._named: dict[str, Any] = {}
        self._sizes = _Sizes()

    def parse(self, text: str) -> Any:
        """The schema in `text`. ValueError, as the end of a sentence, when it is invalid or cannot be read."""
        fastavro = avro_library()
        try:
            schema = fastavro.parse_schema(json.loads(text), named_schemas=self._named)
        except Exception as error:  # the parser raises errors of many kinds: KeyError, UnknownType and others
            raise ValueError(f"is no schema of Avro ({type(error).__name__}: {str(error)[:100]})") from error
        self._sizes.least(schema)
        return schema


def read_record(payload: bytes, skips: int, writer: Any, reader: Any = None) -> dict[str, Any]:
    """The record after `skips` bytes, written by the schema `writer`, resolved to `reader` (None: not resolved).

    ValueError when the bytes are not exactly a record of the schema.
    """
    fastavro = avro_library()
    file = BytesIO(payload)
    file.seek(skips)
    try:
        record = fastavro.schemaless_reader(file, writer, reader)
    except Exception as error:  # for invalid bytes the reader raises errors of nearly every kind
        raise ValueError(f"{type(error).__name__}: {str(error)[:100]}" if str(error) else "it is cut off") from error
    if not isinstance(record, dict):
        raise ValueError("it is no record")
    if file.tell() != len(payload):
        raise ValueError(f"{len(payload) - file.tell()} bytes follow the record")
    return {name: _plain(value) for name, value in record.items()}


class _Sizes:
    """The minimal size of values of a schema's types, in bytes. ValueError for types that can crash the reader."""

    def __init__(self) -> None:
        self._named: dict[str, int | None] = {}

    def least(self, node: Any) -> int:
        """The minimal size of a type, which fastavro has parsed."""
        if isinstance(node, list):
            return 1 + min((self.least(branch) for branch in node), default=0)
        if isinstance(node, str):
            return self._of_name(node)
        kind = node["type"]
        if kind in {"record", "error", "enum", "fixed"}:
            return self._define(node, kind)
        if kind == "array" and not self.least(node["items"]):
            # A few bytes could announce a billion elements, and the reader would produce all of them.
            raise ValueError("has an array whose elements take no bytes, which cannot be read")
        if kind == "map":
            self.least(node["values"])
        return 1 if kind in {"array", "map"} else self.least(kind)

    def _of_name(self, name: str) -> int:
        if name in self._named:
            size = self._named[name]
            if size is None:
                # A level of nesting takes few bytes, so that a message could overflow the stack of the C reader.
                raise ValueError(f"has a type that holds itself ('{name}'), which cannot be read")
            return size
        return _LEAST.get(name, 1)

    def _define(self, node: Any, kind: str) -> int:
        if kind == "enum":
            size = 1
        elif kind == "fixed":
            size = int(node["size"])
        else:
            self._named[node["name"]] = None
            size = sum(self.least(field["type"]) for field in node["fields"])
        self._named[node["name"]] = size
        return size


@cache
def avro_library() -> Any:
    """fastavro, extended to read instants in nanoseconds as datetimes; by itself it returns plain numbers."""
    import fastavro
    from fastavro.read import LOGICAL_READERS

    for name in _NANOS:
        LOGICAL_READERS[name] = _from_nanos
    return fastavro


def _from_nanos(value: int, *_: object) -> datetime:
    """The instant, rounded down to the microsecond, the resolution of TIMESTAMP."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value // 1000)


def _plain(value: object) -> object:
    """The value, with a UUID as text."""
    return str(value) if isinstance(value, UUID) else value


def avro_texts(schema: object) -> Iterator[str]:
    """The text of a schema that is a text or a JSON object; nothing for any other value."""
    if isinstance(schema, str):
        yield schema
    elif isinstance(schema, dict):
        yield json.dumps(schema)
