"""Parquet files, row group by row group."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hybrid.files.limits import DEFAULT_LIMITS, FileLimits
from hybrid.files.records import Record, Shape, Slice, arrow_errors
from hybrid.schema.problem import Problem

_BATCH_ROWS = 4096
# Spark and Hive write INT96. In 64-bit nanoseconds it would overflow outside of 1677 to 2262.
INT96_UNIT = "us"


def row_groups(path: Path, limits: FileLimits = DEFAULT_LIMITS) -> list[Slice]:
    """One slice for each row group. Problem when the footer cannot be read."""
    import pyarrow.parquet as pq

    try:
        metadata = pq.ParquetFile(path).metadata
        sizes = [metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups)]
    except arrow_errors() as error:
        raise Problem(0, "", f"cannot be read as Parquet, is it damaged or cut off? {error}") from error
    _check_ratio(sum(sizes), path.stat().st_size, limits)
    slices, first = [], 0
    for group in range(metadata.num_row_groups):
        slices.append(Slice(path, Shape.PARQUET, first, group))
        first += metadata.row_group(group).num_rows
    return slices


def _check_ratio(unpacked: int, packed: int, limits: FileLimits) -> None:
    """Problem when a file claims to unpack to far more than its bytes.

    Columns are not asked for their sizes, because Arrow crashes the process on some damaged footers then.
    """
    if limits.is_bomb(unpacked, packed):
        raise Problem(0, "", f"unpacks to more than {limits.ratio_max} times its size, which is not read")


def read_row_group(piece: Slice) -> Iterator[Record]:
    """The rows of a slice. Problem names the first row of the batch that cannot be read."""
    import pyarrow.parquet as pq

    position, group = piece.first, f"row group {piece.start}"
    try:
        file = pq.ParquetFile(piece.path, coerce_int96_timestamp_unit=INT96_UNIT)
        for batch in file.iter_batches(_BATCH_ROWS, row_groups=[piece.start]):
            for values in batch.to_pylist(maps_as_pydicts="strict"):
                yield Record(position, f", row {position + 1} ({group})", values)
                position += 1
    except arrow_errors() as error:
        at = f", from row {position + 1} on ({group})"
        raise Problem(position, at, f"cannot be read as Parquet, is it damaged? {error}") from error
