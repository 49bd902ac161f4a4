"""How Avro messages are written: by one schema, bare or behind the number that a schema registry gives it."""

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
# A zero, and the schema's number.
REGISTRY_BYTES = 5


@dataclass(frozen=True)
class AvroMessages:
    """Messages of the schema in `text` (JSON). `skips` bytes stand before each record: a registry's mark and number."""

    text: str
    skips: int = 0

    @cached_property
    def _schema(self) -> Any:
        import fastavro

        return fastavro.parse_schema(json.loads(self.text))

    def __getstate__(self) -> dict[str, Any]:
        return {"text": self.text, "skips": self.skips}

    def check(self) -> str | None:
        """What is wrong with the schema, in words; None when it is one of records."""
        try:
            schema = self._schema
        except Exception as error:  # the parser raises what it meets: KeyError, UnknownType and others
            return f"is no schema of Avro ({type(error).__name__}: {str(error)[:100]})"
        if not isinstance(schema, dict) or schema.get("type") != "record":
            return "is no schema of records"
        try:
            _Sizes().least(schema)
        except ValueError as error:
            return str(error)
        return None

    def read(self, payload: bytes) -> dict[str, Any]:
        """The record in a message. ValueError when the bytes are not one record of the schema."""
        if len(payload) < self.skips or (self.skips and payload[0] != 0):
            raise ValueError("it does not begin with a registry's mark and number")
        return read_record(payload, self.skips, self._schema)


class AvroSchemas:
    """Schemas that may refer to each other's types, in the order in which they need each other."""

    def __init__(self) -> None:
        self._named: dict[str, Any] = {}
        self._sizes = _Sizes()

    def parse(self, text: str) -> Any:
        """The schema in `text`. ValueError, as the end of a sentence, for what is none or cannot be read."""
        fastavro = avro_library()
        try:
            schema = fastavro.parse_schema(json.loads(text), named_schemas=self._named)
        except Exception as error:  # the parser raises what it meets: KeyError, UnknownType and others
            raise ValueError(f"is no schema of Avro ({type(error).__name__}: {str(error)[:100]})") from error
        self._sizes.least(schema)
        return schema


def read_record(payload: bytes, skips: int, writer: Any, reader: Any = None) -> dict[str, Any]:
    """The record behind `skips` bytes, as `writer` wrote it and `reader` resolves it (None: as it was written).

    ValueError when the bytes are not one record of the schema.
    """
    fastavro = avro_library()
    file = BytesIO(payload)
    file.seek(skips)
    try:
        record = fastavro.schemaless_reader(file, writer, reader)
    except Exception as error:  # of bytes that are no record the reader raises nearly everything there is
        raise ValueError(f"{type(error).__name__}: {str(error)[:100]}" if str(error) else "it is cut off") from error
    if not isinstance(record, dict):
        raise ValueError("it is no record")
    if file.tell() != len(payload):
        raise ValueError(f"{len(payload) - file.tell()} bytes follow the record")
    return {name: _plain(value) for name, value in record.items()}


class _Sizes:
    """The fewest bytes that values of a schema's types take. ValueError for types whose bytes no reader survives."""

    def __init__(self) -> None:
        self._named: dict[str, int | None] = {}

    def least(self, node: Any) -> int:
        """Of a type, as the parser left it."""
        if isinstance(node, list):
            return 1 + min((self.least(one) for one in node), default=0)
        if isinstance(node, str):
            return self._of_name(node)
        kind = node["type"]
        if kind in {"record", "error", "enum", "fixed"}:
            return self._define(node, kind)
        if kind == "array" and not self.least(node["items"]):
            # Their number alone would say how long the reader goes on: some bytes tell of a billion.
            raise ValueError("has an array whose elements take no bytes, which cannot be read")
        if kind == "map":
            self.least(node["values"])
        return 1 if kind in {"array", "map"} else self.least(kind)

    def _of_name(self, name: str) -> int:
        if name in self._named:
            size = self._named[name]
            if size is None:
                # A few bytes for each level: the reader, which is written in C, would run out of its stack.
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
    """fastavro, which also reads instants in nanoseconds as instants; it gives them as bare numbers by itself."""
    import fastavro
    from fastavro.read import LOGICAL_READERS

    for name in _NANOS:
        LOGICAL_READERS[name] = _from_nanos
    return fastavro


def _from_nanos(value: int, *_: object) -> datetime:
    """To the microsecond, as TIMESTAMP holds instants."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value // 1000)


def _plain(value: object) -> object:
    """UUIDs as the text that they are written as."""
    return str(value) if isinstance(value, UUID) else value


def avro_texts(schema: object) -> Iterator[str]:
    """A schema as text, given as text or as JSON; nothing for what is neither."""
    if isinstance(schema, str):
        yield schema
    elif isinstance(schema, dict):
        yield json.dumps(schema)
