"""ORC files, stripe by stripe."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid.files.limits import DEFAULT_LIMITS, FileLimits
from hybrid.files.orc_layout import read_layout
from hybrid.files.records import Record, Shape, Slice, arrow_errors
from hybrid.runtime.arrow_rows import UnreadableValueError, rows_of
from hybrid.schema.problem import Problem

if TYPE_CHECKING:
    from pyarrow import Array, RecordBatch

_BATCH_ROWS = 4096
_VALUE_BYTES = 8
# A batch takes at most this part of `ratio_from`: Arrow holds it twice while it grows.
_BATCH_PART = 4
# For how long a read waits for Arrow's threads at most; they take milliseconds.
_RELEASE_S = 5.0


def stripes(path: Path, limits: FileLimits = DEFAULT_LIMITS) -> list[Slice]:
    """One slice for each stripe. Problem when the footer cannot be read, or claims far too many rows."""
    import pyarrow.orc as orc

    slices, first = [], 0
    try:
        columns = len(orc.ORCFile(path).schema.names)
        rows = [stripe.rows for stripe in read_layout(path).stripes]
        _check_rows(path, sum(rows), columns, limits)
    except arrow_errors() as error:
        raise Problem(0, "", f"cannot be read as ORC, is it damaged or cut off? {error}") from error
    for number, count in enumerate(rows):
        slices.append(Slice(path, Shape.ORC, first, number))
        first += count
    return slices


def _check_rows(path: Path, rows: int, columns: int, limits: FileLimits) -> None:
    """Problem when a footer claims so many rows that they must unpack to far more than the file's bytes.

    A run of equal values takes some bytes.
    """
    if limits.is_bomb(rows * columns * _VALUE_BYTES, path.stat().st_size):
        raise Problem(
            0, "", f"unpacks to more than {limits.ratio_max} times its size, which is not read. Write it as Parquet"
        )


def read_stripe(piece: Slice, limits: FileLimits = DEFAULT_LIMITS) -> Iterator[Record]:
    """The rows of a slice. Problem names the first row of the batch that cannot be read."""
    from pyarrow.lib import ArrowException

    position, stripe = piece.first, f"stripe {piece.start}"
    try:
        try:
            for batch in _bounded(_batches(piece, limits), piece.path, limits):
                for values in rows_of(batch):
                    yield Record(position, f", row {position + 1} ({stripe})", values)
                    position += 1
        except ArrowException as error:
            _refuse_unreadable_time(piece, limits, error)
            raise
    except UnreadableValueError as error:
        raise Problem(position, f", row {position + 1} ({stripe})", str(error)) from error
    except arrow_errors() as error:
        at = f", from row {position + 1} on ({stripe})"
        raise Problem(position, at, f"cannot be read as ORC, is it damaged? {error}") from error


def _batches(piece: Slice, limits: FileLimits, columns: Sequence[str] | None = None) -> Iterator[RecordBatch]:
    """The rows of a stripe, so few at once that they take little memory, however long their texts and lists are."""
    import pyarrow as pa
    from pyarrow.dataset import OrcFileFormat

    layout = read_layout(piece.path)
    stripe = layout.stripes[piece.start]
    with piece.path.open("rb") as file:
        row_bytes = layout.row_bytes(file, stripe, limits)
        rows = min(_BATCH_ROWS, max(1, limits.ratio_from // _BATCH_PART // max(1, row_bytes)))
        # No reading ahead. Even so one of Arrow's threads may hold the file for moments after the last batch. A thread
        # that needs Python when the process has begun to end aborts it.
        source, is_released = layout.alone(file, stripe), threading.Event()
        weakref.finalize(source, is_released.set)
        fragment = OrcFileFormat().make_fragment(pa.PythonFile(source, mode="r"))
        del source
        try:
            yield from fragment.to_batches(
                columns=columns, batch_size=rows, batch_readahead=0, fragment_readahead=0, use_threads=False
            )
        finally:
            del fragment
            is_released.wait(_RELEASE_S)


def _bounded(batches: Iterator[RecordBatch], path: Path, limits: FileLimits) -> Iterator[RecordBatch]:
    """Batches up to the limit of the file: Problem when the texts and lists so far take far more than its bytes."""
    packed, unpacked = path.stat().st_size, 0
    for batch in batches:
        unpacked += sum(_bytes_of(column) for column in batch.columns)
        limits.check_ratio(unpacked, packed)
        yield batch


def _bytes_of(column: Array) -> int:
    """The bytes of a column whose values take any number of bytes. The others are bounded by the number of rows."""
    import pyarrow as pa

    if pa.types.is_struct(column.type):
        return sum(_bytes_of(column.field(number)) for number in range(column.type.num_fields))
    is_fixed = pa.types.is_primitive(column.type) or pa.types.is_decimal(column.type)
    return 0 if is_fixed else int(column.nbytes)


def _refuse_unreadable_time(piece: Slice, limits: FileLimits, error: Exception) -> None:
    """Problem with the column's name when its instants exceed the range of 64-bit nanoseconds."""
    import pyarrow.orc as orc
    from pyarrow.lib import ArrowException

    if "nanosecond" not in str(error):
        return
    file: Any = orc.ORCFile(piece.path)
    for name in file.schema.names:
        try:
            for _ in _bounded(_batches(piece, limits, [name]), piece.path, limits):
                pass
        except ArrowException as of_column:
            if "nanosecond" in str(of_column):
                reason = f"column '{name}' has an instant outside of 1677 to 2262, which ORC is not read beyond"
                at = f", stripe {piece.start}"
                raise Problem(piece.first, at, f"{reason}: {of_column}. Write the file as Parquet") from error
