"""ORC files, stripe by stripe."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hybrid.files.limits import DEFAULT_LIMITS, FileLimits
from hybrid.files.records import Record, Shape, Slice, arrow_errors
from hybrid.schema.problem import Problem

_BATCH_ROWS = 4096
_VALUE_BYTES = 8


def stripes(path: Path, limits: FileLimits = DEFAULT_LIMITS) -> list[Slice]:
    """One slice for each stripe. Problem when the footer, or the column that is counted, cannot be read."""
    import pyarrow.orc as orc

    slices, first = [], 0
    try:
        file = orc.ORCFile(path)
        # pyarrow does not expose the footer's row counts: with several stripes, one column is read to count rows.
        first_column = file.schema.names[:1]
        _check_rows(path, file.nrows, len(file.schema.names), limits)
        for stripe in range(file.nstripes):
            slices.append(Slice(path, Shape.ORC, first, stripe))
            first += file.read_stripe(stripe, columns=first_column).num_rows if file.nstripes > 1 else file.nrows
    except arrow_errors() as error:
        raise Problem(0, "", f"cannot be read as ORC, is it damaged or cut off? {error}") from error
    return slices


def _check_rows(path: Path, rows: int, columns: int, limits: FileLimits) -> None:
    """Problem when a footer claims so many rows that they must unpack to far more than the file's bytes.

    A run of equal values takes some bytes, and a stripe is unpacked whole.
    """
    if limits.is_bomb(rows * columns * _VALUE_BYTES, path.stat().st_size):
        raise Problem(
            0, "", f"unpacks to more than {limits.ratio_max} times its size, which is not read. Write it as Parquet"
        )


def read_stripe(piece: Slice) -> Iterator[Record]:
    """The rows of a slice. Problem names the first row of the batch that cannot be read."""
    import pyarrow.orc as orc
    from pyarrow.lib import ArrowException

    position, stripe = piece.first, f"stripe {piece.start}"
    try:
        file = orc.ORCFile(piece.path)
        try:
            rows = file.read_stripe(piece.start)
        except ArrowException as error:
            _refuse_unreadable_time(file, piece, error)
            raise
        for start in range(0, rows.num_rows, _BATCH_ROWS):
            for values in rows.slice(start, _BATCH_ROWS).to_pylist(maps_as_pydicts="strict"):
                yield Record(position, f", row {position + 1} ({stripe})", values)
                position += 1
    except arrow_errors() as error:
        at = f", from row {position + 1} on ({stripe})"
        raise Problem(position, at, f"cannot be read as ORC, is it damaged? {error}") from error


def _refuse_unreadable_time(file: Any, piece: Slice, error: Exception) -> None:
    """Problem with the column's name when its instants exceed the range of 64-bit nanoseconds."""
    from pyarrow.lib import ArrowException

    if "nanosecond" not in str(error):
        return
    for name in file.schema.names:
        try:
            file.read_stripe(piece.start, columns=[name])
        except ArrowException as of_column:
            if "nanosecond" in str(of_column):
                reason = f"column '{name}' has an instant outside of 1677 to 2262, which ORC is not read beyond"
                at = f", stripe {piece.start}"
                raise Problem(piece.first, at, f"{reason}: {of_column}. Write the file as Parquet") from error
