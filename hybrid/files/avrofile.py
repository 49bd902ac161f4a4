"""Avro files, block by block; also compressed with gzip as a whole, Pinot's `gzipped_avro`."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from typing import Any
from uuid import UUID

from hybrid.files.avro_codecs import bound_codecs, codec_errors
from hybrid.files.records import Record, Slice, open_plain
from hybrid.formats.avro_messages import avro_library
from hybrid.runtime.arrow_rows import bad_byte
from hybrid.schema.problem import Problem


def read_avro(piece: Slice) -> Iterator[Record]:
    """The rows of a file. Problem names the row that cannot be read, and its block."""
    fastavro = avro_library()
    bound_codecs()
    position = block = 0
    try:
        with open_plain(piece.path) as file:
            for block, rows in enumerate(fastavro.block_reader(file)):
                for values in rows:
                    if not isinstance(values, dict):
                        raise Problem(position, f", row {position + 1} (block {block})", "is not a record")
                    yield Record(position, f", row {position + 1} (block {block})", _plain(values))
                    position += 1
            file.read(1)  # fastavro takes truncated gzip data for the end of the file
    except UnicodeDecodeError as error:
        reason = f"cannot be read as Avro, is it damaged or cut off? A text is not UTF-8: {bad_byte(error)}"
        raise Problem(position, f", row {position + 1} (block {block})", reason) from error
    except _broken() as error:
        at = f", from row {position + 1} on (block {block})" if position else ""
        raise Problem(position, at, f"cannot be read as Avro, is it damaged or cut off? {error}") from error


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """The values with UUIDs as text."""
    return {name: str(value) if isinstance(value, UUID) else value for name, value in values.items()}


@cache
def _broken() -> tuple[type[Exception], ...]:
    """The exceptions for bytes that are not Avro: the reader's own errors and those of every codec."""
    from fastavro.schema import SchemaParseException, UnknownType

    reader = (ValueError, ArithmeticError, LookupError, TypeError, struct.error, SchemaParseException, UnknownType)
    return (*codec_errors(), *reader, MemoryError, RecursionError)  # for corrupt lengths and depths
