"""Writers of results: record batches in, bytes of a format out, in the memory of a few batches."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from hybrid.files.results.markdown_cells import markdown_head
from hybrid.files.results.result_format import ResultFormat
from hybrid.files.results.text_columns import csv_texts, joined_lines, json_texts, markdown_texts

ERROR_KEY = b"hybrid.error"
# Text is made of so many bytes of values at once; Arrow's texts end at 2 GiB.
_TEXT_BYTES = 32 * 1024 * 1024
# A row group of Parquet, or a batch of Arrow, ends at so many rows or bytes.
_GROUP_ROWS, _GROUP_BYTES = 122_880, 32 * 1024 * 1024
_ARROW_ROWS, _ARROW_BYTES = 65_536, 8 * 1024 * 1024


class ByteStream(Protocol):
    """Where the bytes of a result go. They may be gathered: `flush` passes them on."""

    def write(self, data: bytes | memoryview) -> int:
        """Takes bytes; returns their number."""

    def flush(self) -> None:
        """Passes on what was gathered."""


class ResultWriter(Protocol):
    """Writes one result. Without `close` it is incomplete, and readers of binary formats say so."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Appends rows."""

    def close(self) -> None:
        """Completes the result, also without rows."""

    def abandon(self, error: Mapping[str, object] | None = None) -> None:
        """Leaves the result incomplete. `error` says why, in a format whose readers can learn it."""


def open_writer(fmt: ResultFormat, stream: ByteStream, schema: pa.Schema, *, seekable: bool) -> ResultWriter:
    """A writer of a result with this schema. Without `seekable` readers take the bytes as they come: Arrow's stream."""
    match fmt:
        case ResultFormat.PARQUET:
            return _ParquetWriter(stream, schema)
        case ResultFormat.ARROW:
            return _ArrowWriter(stream, schema, seekable)
        case ResultFormat.CSV:
            return _TextWriter(stream, _csv_rows, _csv_head(schema))
        case ResultFormat.MARKDOWN:
            return _TextWriter(stream, _markdown_rows, markdown_head(schema.names, list(map(_is_number, schema.types))))
        case ResultFormat.JSONL:
            return _TextWriter(stream, _json_rows, "")
        case ResultFormat.JSON:
            return _JsonWriter(stream)


class _TextWriter:
    def __init__(self, stream: ByteStream, rows: Callable[[pa.RecordBatch], memoryview], head: str) -> None:
        self._stream, self._rows = stream, rows
        stream.write(head.encode())

    def write(self, batch: pa.RecordBatch) -> None:
        for part in text_parts(batch):
            self._stream.write(self._rows(part))

    def close(self) -> None:
        self._stream.flush()

    def abandon(self, error: Mapping[str, object] | None = None) -> None:
        pass


class _JsonWriter:
    """One array; each row has a line of its own, so that line tools read it too."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream, self._begun = stream, False
        stream.write(b"[")

    def write(self, batch: pa.RecordBatch) -> None:
        for part in text_parts(batch):
            rows = joined_lines([",\n{", *_json_members(part), "}"], "null")
            self._stream.write(rows if self._begun else rows[1:])
            self._begun = True

    def close(self) -> None:
        self._stream.write(b"\n]\n" if self._begun else b"]\n")
        self._stream.flush()

    def abandon(self, error: Mapping[str, object] | None = None) -> None:
        pass


class _GroupedWriter:
    """Gathers batches until they are enough for a group, and writes each group in one piece."""

    def __init__(self, stream: ByteStream, rows_max: int, bytes_max: int) -> None:
        self._stream, self._output = stream, _ArrowOutput(stream)
        self._rows_max, self._bytes_max = rows_max, bytes_max
        self._batches: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0
        self._writer: Any

    def write(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= self._rows_max or self._bytes >= self._bytes_max:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()
        self._stream.flush()

    def _flush(self) -> None:
        batches, self._batches, self._rows, self._bytes = self._batches, [], 0, 0
        if batches:
            self._write_group(pa.Table.from_batches(batches))

    def _write_group(self, table: pa.Table) -> None:
        raise NotImplementedError


class _ParquetWriter(_GroupedWriter):
    def __init__(self, stream: ByteStream, schema: pa.Schema) -> None:
        super().__init__(stream, _GROUP_ROWS, _GROUP_BYTES)
        self._writer = pq.ParquetWriter(self._output, schema)

    def abandon(self, error: Mapping[str, object] | None = None) -> None:
        self._output.is_closed = True  # the footer would make a part of a result a whole file
        with suppress(Exception):
            self._writer.close()

    def _write_group(self, table: pa.Table) -> None:
        self._writer.write_table(table, row_group_size=table.num_rows)


class _ArrowWriter(_GroupedWriter):
    def __init__(self, stream: ByteStream, schema: pa.Schema, seekable: bool) -> None:
        super().__init__(stream, _ARROW_ROWS, _ARROW_BYTES)
        self._schema, self._is_stream = schema, not seekable
        self._writer = (pa.ipc.new_file if seekable else pa.ipc.new_stream)(self._output, schema)

    def abandon(self, error: Mapping[str, object] | None = None) -> None:
        with suppress(Exception):
            if error is not None and self._is_stream:
                nothing = pa.RecordBatch.from_pylist([], schema=self._schema)
                self._writer.write_batch(nothing, custom_metadata={ERROR_KEY: json.dumps(error).encode()})
                self._stream.flush()
            self._output.is_closed = True
            self._writer.close()

    def _write_group(self, table: pa.Table) -> None:
        self._writer.write_table(table.combine_chunks(), max_chunksize=max(1, table.num_rows))


class _ArrowOutput:
    """The stream as Arrow's writers use it: closing it does not close the stream, and a closed one passes nothing."""

    closed = False  # Arrow asks for it

    def __init__(self, stream: ByteStream) -> None:
        self._stream, self.is_closed = stream, False

    def write(self, data: bytes | memoryview) -> int:
        return len(data) if self.is_closed else self._stream.write(data)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False


def text_parts(batch: pa.RecordBatch, bytes_max: int = _TEXT_BYTES) -> Iterator[pa.RecordBatch]:
    """The batch in parts whose texts fit into memory."""
    if batch.nbytes <= bytes_max or batch.num_rows <= 1:
        if batch.num_rows:
            yield batch
        return
    half = batch.num_rows // 2
    yield from text_parts(batch.slice(0, half), bytes_max=bytes_max)
    yield from text_parts(batch.slice(half), bytes_max=bytes_max)


def _csv_head(schema: pa.Schema) -> str:
    cells: list[str] = csv_texts(pa.array(schema.names, pa.string())).to_pylist()
    return ",".join(cells) + "\n"


def _csv_rows(batch: pa.RecordBatch) -> memoryview:
    cells = [part for column in batch.columns for part in (",", csv_texts(column))]
    return joined_lines([*cells[1:], "\n"], "")


def _markdown_rows(batch: pa.RecordBatch) -> memoryview:
    cells = [part for column in batch.columns for part in (" | ", markdown_texts(column))]
    return joined_lines(["| ", *cells[1:], " |\n"], "")


def _json_rows(batch: pa.RecordBatch) -> memoryview:
    return joined_lines(["{", *_json_members(batch), "}\n"], "null")


def _json_members(batch: pa.RecordBatch) -> list[pa.Array | str]:
    members: list[pa.Array | str] = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        members += [f"{', ' if members else ''}{json.dumps(name, ensure_ascii=False)}: ", json_texts(column)]
    return members


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
