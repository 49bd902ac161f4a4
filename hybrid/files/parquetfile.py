"""Parquet files, row group by row group."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hybrid.files.records import Record, Shape, Slice
from hybrid.spec.problem import Problem

_BATCH_ROWS = 4096


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
        slices.append(Slice(path, Shape.PARQUET, first, group))
        first += metadata.row_group(group).num_rows
    return slices


def read_row_group(piece: Slice) -> Iterator[Record]:
    """The rows of a slice. Problem names the first row of the batch that cannot be read."""
    import pyarrow.parquet as pq
    from pyarrow.lib import ArrowException

    position, group = piece.first, f"row group {piece.start}"
    try:
        for batch in pq.ParquetFile(piece.path).iter_batches(_BATCH_ROWS, row_groups=[piece.start]):
            for values in batch.to_pylist(maps_as_pydicts="strict"):
                yield Record(position, f", row {position + 1} ({group})", values)
                position += 1
    except (ArrowException, OSError, ValueError, KeyError) as error:
        at = f", from row {position + 1} on ({group})"
        raise Problem(position, at, f"cannot be read as Parquet, is it damaged? {error}") from error
