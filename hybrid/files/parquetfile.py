"""Parquet files, row group by row group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.files.limits import DEFAULT_LIMITS, FileLimits
from hybrid.files.records import Record, Shape, Slice, arrow_errors
from hybrid.runtime.arrow_rows import UnreadableValueError, rows_of
from hybrid.schema.problem import Problem

if TYPE_CHECKING:
    from pyarrow import Array, RecordBatch
    from pyarrow.parquet import ColumnSchema, ParquetSchema

# Arrow copies a column's dictionary for each batch that it reads, so few large ones are read and divided.
_BATCH_ROWS, _PART_ROWS = 65_536, 4096
_TEXTS = {"STRING", "NONE", "ENUM", "JSON", "BSON"}
# Spark and Hive write INT96. In 64-bit nanoseconds it would overflow outside of 1677 to 2262.
INT96_UNIT = "us"


def row_groups(path: Path, limits: FileLimits = DEFAULT_LIMITS) -> list[Slice]:
    """One slice for each row group. Problem when the footer cannot be read."""
    import pyarrow.parquet as pq

    try:
        metadata = pq.ParquetFile(path).metadata
        # Columns are not asked for their sizes, because Arrow crashes the process on some damaged footers then.
        sizes = [metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups)]
    except arrow_errors() as error:
        raise Problem(0, "", f"cannot be read as Parquet, is it damaged or cut off? {error}") from error
    limits.check_ratio(sum(sizes), path.stat().st_size)
    slices, first = [], 0
    for group in range(metadata.num_row_groups):
        slices.append(Slice(path, Shape.PARQUET, first, group))
        first += metadata.row_group(group).num_rows
    return slices


def read_row_group(piece: Slice, limits: FileLimits = DEFAULT_LIMITS) -> Iterator[Record]:
    """The rows of a slice. Problem names the first row of the batch that cannot be read."""
    import pyarrow.parquet as pq

    position, group = piece.first, f"row group {piece.start}"
    try:
        metadata = pq.read_metadata(piece.path)
        file = pq.ParquetFile(
            piece.path,
            metadata=metadata,
            coerce_int96_timestamp_unit=INT96_UNIT,
            read_dictionary=_text_columns(metadata.schema),
        )
        for batch in _bounded(file.iter_batches(_BATCH_ROWS, row_groups=[piece.start]), piece.path, limits):
            for values in rows_of(batch):
                yield Record(position, f", row {position + 1} ({group})", values)
                position += 1
    except UnreadableValueError as error:
        raise Problem(position, f", row {position + 1} ({group})", str(error)) from error
    except arrow_errors() as error:
        at = f", from row {position + 1} on ({group})"
        raise Problem(position, at, f"cannot be read as Parquet, is it damaged? {error}") from error


def _text_columns(schema: ParquetSchema) -> list[str]:
    """The paths of columns of texts and bytes. A dictionary of the file may repeat one text any number of times."""
    columns = [schema.column(number) for number in range(len(schema.names))]
    return [column.path for column in columns if column.physical_type == "BYTE_ARRAY" and _is_text(column)]


def _is_text(column: ColumnSchema) -> bool:
    return column.logical_type.type in _TEXTS


def _bounded(batches: Iterable[RecordBatch], path: Path, limits: FileLimits) -> Iterator[RecordBatch]:
    """Batches whose texts, until here dictionaries, are unpacked: few rows at once where they are long.

    Problem, before they are unpacked, when the texts so far take far more than the file's bytes.
    """
    packed, unpacked = path.stat().st_size, 0
    for batch in batches:
        text_bytes = _text_bytes(batch)
        unpacked += text_bytes
        limits.check_ratio(unpacked, packed)
        for rows in _divided(batch, text_bytes, limits.ratio_from):
            yield rows.from_arrays([_plain(column) for column in rows.columns], names=rows.schema.names)


def _divided(batch: RecordBatch, text_bytes: int, bytes_max: int) -> Iterator[RecordBatch]:
    """Parts of a batch: at most `_PART_ROWS` rows whose texts take at most `bytes_max`, or single rows.

    `text_bytes` are those of the batch, or more. Where they fit, its parts fit and are not measured again.
    """
    if batch.num_rows <= 1 or (batch.num_rows <= _PART_ROWS and text_bytes <= bytes_max):
        yield batch
        return
    half = batch.num_rows // 2
    for part in (batch.slice(0, half), batch.slice(half)):
        yield from _divided(part, text_bytes if text_bytes <= bytes_max else _text_bytes(part), bytes_max)


def _plain(column: Array) -> Array:
    import pyarrow as pa

    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _text_bytes(batch: RecordBatch) -> int:
    return sum(_bytes_of(column) for column in batch.columns)


def _bytes_of(column: Array) -> int:
    """The bytes of the texts that the dictionaries of a column, or of its parts, stand for."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        lengths = pc.binary_length(column.dictionary).cast(pa.int64())
        return int(pc.sum(lengths.take(column.indices)).as_py() or 0)
    if pa.types.is_map(column.type):
        first, last = (column.offsets[0].as_py(), column.offsets[-1].as_py()) if len(column) else (0, 0)
        return sum(_bytes_of(part.slice(first, last - first)) for part in (column.keys, column.items))
    if pa.types.is_list(column.type):
        return _bytes_of(column.flatten())
    if pa.types.is_struct(column.type):
        return sum(_bytes_of(column.field(number)) for number in range(column.type.num_fields))
    return 0
