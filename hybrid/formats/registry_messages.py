"""Decodes messages in the wire format of Confluent's schema registry: a zero byte, a schema id in 4 bytes, the record.

Schemas are fetched by id with Confluent's own client and cached for the life of a process, because the schema of an id
never changes. Avro records are read by the writer's schema. A schema of the table is the reader's; the two are resolved
as the Avro specification says (defaults, aliases, promotions). The record of a JSON Schema message is JSON; it is
validated where the config asks for it.

An unknown id is an error of the message: the row is rejected, kept, and can be replayed. A registry that does not
answer is no error of the message: RegistryError stops the reader, so that nothing is lost.

Source: Confluent's wire format; KafkaConfluentSchemaRegistryAvroMessageDecoder and
KafkaConfluentSchemaRegistryJsonMessageDecoder of Apache Pinot.
"""

from __future__ import annotations

import json
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

from hybrid.errors import RegistryError
from hybrid.formats.avro_messages import REGISTRY_BYTES, AvroSchemas, read_record
from hybrid.schema.jsontext import parse_json
from hybrid.schema.references import resolve

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

_FRAME = struct.Struct(">bI")
_TIMEOUT_S = 5
_RETRIES, _RETRY_MS = 2, 100
_UNKNOWN_S = 10.0  # how long the registry's answer that it does not know an id is cached
_DOWN_S = 1.0  # how long a registry that did not answer is not asked again, because each reader would wait for it
_REFERENCES_MAX = 100
_ERROR_MAX = 200
_REFUSED = frozenset({401, 403, 407})

Read = Callable[[bytes], dict[str, Any]]


class RegistryFormat(StrEnum):
    """The format of the record after the frame."""

    AVRO = "AVRO"
    JSON = "JSON"


@dataclass(frozen=True)
class RegistryMessages:
    """Messages whose schemas are in a registry.

    `url` is the registry's REST address, several separated by commas. `user_info` is `NAME:SECRET` for basic
    authentication, `ca` a file of certificate authorities. `reader` is the Avro schema, as text, to which records are
    resolved (None: they are not). `validates`: a JSON record must fit its schema.
    """

    url: str
    format: RegistryFormat = RegistryFormat.AVRO
    reader: str | None = None
    user_info: str | None = field(default=None, repr=False)
    ca: str | None = None
    validates: bool = False

    def read(self, payload: bytes) -> dict[str, Any]:
        """The record in a message.

        ValueError when the bytes are no record, or their schema is unknown or does not fit; RegistryError when the
        registry does not answer.
        """
        if len(payload) < REGISTRY_BYTES or payload[0] != 0:
            raise ValueError("it does not begin with a registry's mark and number")
        _, number = _FRAME.unpack_from(payload)
        return _registry(self).reader(number)(payload)


class _Registry:
    """The client of a registry in this process, with a cache of readers by schema id."""

    def __init__(self, messages: RegistryMessages) -> None:
        self._messages = messages
        self._readers: dict[int, Read] = {}
        self._unknown: dict[int, tuple[float, str]] = {}
        self._lock = threading.Lock()
        self._made: SchemaRegistryClient | None = None
        self._down: tuple[float, RegistryError | None] = (0.0, None)

    def reader(self, number: int) -> Read:
        """The reader of records of a schema id. ValueError when there is no such schema, or it cannot be read."""
        reader = self._readers.get(number)
        if reader is not None:
            return reader
        with self._lock:
            until, reason = self._unknown.get(number, (0.0, ""))
            if time.monotonic() < until:
                raise ValueError(reason)
            try:
                made = self._reader_of(self._schema(number), number)
            except ValueError as error:
                self._unknown[number] = (time.monotonic() + _UNKNOWN_S, str(error))
                raise
            self._readers[number] = made
            return made

    @property
    def _client(self) -> SchemaRegistryClient:
        if self._made is None:
            from confluent_kafka.schema_registry import SchemaRegistryClient

            messages = self._messages
            conf: dict[str, Any] = {
                "url": messages.url,
                "timeout": _TIMEOUT_S,
                "max.retries": _RETRIES,
                "retries.wait.ms": _RETRY_MS,
                **({"basic.auth.user.info": _user_info(messages.user_info)} if messages.user_info else {}),
                **({"ssl.ca.location": messages.ca} if messages.ca else {}),
            }
            try:
                self._made = SchemaRegistryClient(conf)
            except (ValueError, TypeError, OSError) as error:
                raise self._unreachable(error) from error
        return self._made

    def _schema(self, number: int) -> Schema:
        return self._ask(lambda: self._client.get_schema(number), f"schema {number}")

    def _ask(self, ask: Callable[[], Schema], what: str) -> Schema:
        """The registry's answer. ValueError when it does not know the schema, RegistryError when it does not answer."""
        until, before = self._down
        if before is not None and time.monotonic() < until:
            raise before
        try:
            return ask()
        except RegistryError:
            raise
        except Exception as error:
            if _status(error) == 404:
                raise ValueError(f"its {what} is not in the registry {self._messages.url}") from error
            unreachable = self._unreachable(error)
            self._down = (time.monotonic() + _DOWN_S, unreachable)
            raise unreachable from error

    def _reader_of(self, schema: Schema, number: int) -> Read:
        kind, table_format = str(schema.schema_type or "AVRO").upper(), self._messages.format
        if kind != table_format:
            raise ValueError(f"its schema {number} is one of {kind}, and the table reads {table_format}")
        if table_format is RegistryFormat.JSON:
            return self._json_reader(schema, number)
        schemas = AvroSchemas()
        try:
            for text in self._referenced(schema, [], set()):
                schemas.parse(text)
            writer = schemas.parse(str(schema.schema_str))
            reader = AvroSchemas().parse(self._messages.reader) if self._messages.reader else None
        except ValueError as error:
            raise ValueError(f"its schema {number} {error}") from error
        return lambda payload: read_record(payload, REGISTRY_BYTES, writer, reader)

    def _referenced(self, schema: Schema, texts: list[str], seen: set[tuple[str, int]]) -> list[str]:
        """The schemas that a schema refers to, each after those that it refers to itself."""
        for reference in schema.references or []:
            subject, version = str(reference.subject), int(reference.version or 1)
            if (subject, version) in seen:
                continue
            seen.add((subject, version))
            if len(seen) > _REFERENCES_MAX:
                raise ValueError(f"refers to more than {_REFERENCES_MAX} others")
            referenced = self._ask(partial(self._version, subject, version), f"schema's reference {subject} {version}")
            self._referenced(referenced, texts, seen)
            texts.append(str(referenced.schema_str))
        return texts

    def _version(self, subject: str, version: int) -> Schema:
        return self._client.get_version(subject, version).schema

    def _json_reader(self, schema: Schema, number: int) -> Read:
        check = self._validator(schema, number) if self._messages.validates else None

        def read(payload: bytes) -> dict[str, Any]:
            try:
                record = parse_json(str(payload[REGISTRY_BYTES:], "utf-8"))
            except (ValueError, RecursionError) as error:
                raise ValueError(f"what follows the schema's number is no JSON: {str(error)[:_ERROR_MAX]}") from error
            if not isinstance(record, dict):
                raise ValueError("it is no JSON object")
            if check is not None:
                check(payload)
            return record

        return read

    def _validator(self, schema: Schema, number: int) -> Callable[[bytes], None]:
        from jsonschema.exceptions import SchemaError
        from jsonschema.validators import validator_for
        from referencing import Registry

        try:
            document = json.loads(str(schema.schema_str))
            made = validator_for(document)
            made.check_schema(document)
            # The empty registry prevents that references to other documents are fetched.
            validator = made(document, registry=Registry())
        except (ValueError, SchemaError) as error:
            raise ValueError(f"its schema {number} is no JSON Schema ({str(error)[:_ERROR_MAX]})") from error

        def check(payload: bytes) -> None:
            try:
                wrong = next(iter(validator.iter_errors(json.loads(payload[REGISTRY_BYTES:]))), None)
            except Exception as error:  # a reference that cannot be resolved, or an invalid pattern
                raise ValueError(f"its schema {number} cannot be applied ({str(error)[:_ERROR_MAX]})") from error
            if wrong is not None:
                raise ValueError(f"it does not fit its schema {number} at {wrong.json_path}: rule {wrong.validator!r}")

        return check

    def _unreachable(self, error: Exception) -> RegistryError:
        status = _status(error)
        if status in _REFUSED:
            return RegistryError(
                f"The schema registry {self._messages.url} refuses the table's credentials (HTTP {status}). "
                "Nothing was read or skipped.",
                hint="Correct schema.registry.basic.auth.user.info in the table config: hybrid table apply",
            )
        reason = f"HTTP {status}" if status else f"{type(error).__name__}: {str(error)[:_ERROR_MAX]}"
        return RegistryError(
            f"The schema registry {self._messages.url} does not answer ({reason}). Nothing was read or skipped.",
            hint="Start it, or correct schema.registry.rest.url in the table config: hybrid table apply",
        )


def _user_info(text: str) -> str:
    """`NAME:SECRET` with references resolved. RegistryError for a reference to a missing value."""
    credentials = resolve(text, "The user of the schema registry", RegistryError)
    if ":" not in credentials:
        raise RegistryError("The user of the schema registry refers to a text that is not NAME:SECRET.")
    return credentials


def _status(error: Exception) -> int | None:
    """The HTTP status of a registry's error; None when it did not answer at all."""
    status = getattr(error, "http_status_code", None)
    return status if isinstance(status, int) and status > 0 else None


_REGISTRIES: dict[RegistryMessages, _Registry] = {}
_REGISTRIES_LOCK = threading.Lock()


def _registry(messages: RegistryMessages) -> _Registry:
    registry = _REGISTRIES.get(messages)
    if registry is None:
        with _REGISTRIES_LOCK:
            registry = _REGISTRIES.setdefault(messages, _Registry(messages))
    return registry
