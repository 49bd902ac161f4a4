"""Parquet files, row group by row group."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hybrid.files.records import Record, Shape, Slice
from hybrid.spec.problem import Problem

_BATCH_ROWS = 4096
_RATIO_MAX, _RATIO_FROM = 300, 64 * 1024 * 1024
# Spark and Hive write INT96. Beyond 1677 to 2262 it would wrap around in 64 bits of nanoseconds.
INT96_UNIT = "us"


def row_groups(path: Path) -> list[Slice]:
    """One slice for each row group. Problem when the footer cannot be read."""
    import pyarrow.parquet as pq
    from pyarrow.lib import ArrowException

    try:
        metadata = pq.ParquetFile(path).metadata
    except ArrowException as error:
        raise Problem(0, "", f"cannot be read as Parquet, is it damaged or cut off? {error}") from error
    slices, first = [], 0
    for group in range(metadata.num_row_groups):
        _check_ratio(metadata.row_group(group), group)
        slices.append(Slice(path, Shape.PARQUET, first, group))
        first += metadata.row_group(group).num_rows
    return slices


def _check_ratio(group: Any, number: int) -> None:
    """Problem when a row group says that it unpacks to far more than it has bytes."""
    packed = sum(group.column(place).total_compressed_size for place in range(group.num_columns))
    if group.total_byte_size > _RATIO_FROM and group.total_byte_size > _RATIO_MAX * max(1, packed):
        raise Problem(
            0, f", row group {number}", f"unpacks to more than {_RATIO_MAX} times its size, which is not read"
        )


def read_row_group(piece: Slice) -> Iterator[Record]:
    """The rows of a slice. Problem names the first row of the batch that cannot be read."""
    import pyarrow.parquet as pq
    from pyarrow.lib import ArrowException

    position, group = piece.first, f"row group {piece.start}"
    try:
        file = pq.ParquetFile(piece.path, coerce_int96_timestamp_unit=INT96_UNIT)
        for batch in file.iter_batches(_BATCH_ROWS, row_groups=[piece.start]):
            for values in batch.to_pylist(maps_as_pydicts="strict"):
                yield Record(position, f", row {position + 1} ({group})", values)
                position += 1
    except (ArrowException, OSError, ValueError, KeyError) as error:
        at = f", from row {position + 1} on ({group})"
        raise Problem(position, at, f"cannot be read as Parquet, is it damaged? {error}") from error
