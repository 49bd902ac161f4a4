"""Rows of Arrow batches as Python values, up to the first text that is not UTF-8.

Arrow and Spark pass texts on as bytes that nobody has checked. Python decodes them, and its error names neither row nor
column.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pyarrow import Array, RecordBatch


# So many bytes before and behind a wrong one are shown.
_SHOWN = 20


class BadText(NamedTuple):
    """A text that is not UTF-8: its row in the batch from 0, its column, and why, as the end of a sentence."""

    row: int
    column: str
    reason: str


class NotUtf8Error(Exception):
    """A row has a text that is not UTF-8. All rows before it were returned."""

    def __init__(self, found: BadText) -> None:
        super().__init__(f"column '{found.column}' {found.reason}")
        self.found = found


def rows_of(batch: RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows of a batch, maps as dicts. NotUtf8Error behind the last row before a text that is not UTF-8."""
    try:
        rows = batch.to_pylist(maps_as_pydicts="strict")
    except UnicodeDecodeError:
        found = first_bad_text(batch)
        if found is None:
            raise
        yield from batch.slice(0, found.row).to_pylist(maps_as_pydicts="strict")
        raise NotUtf8Error(found) from None
    yield from rows


def first_bad_text(batch: RecordBatch) -> BadText | None:
    """The first row with a text that is not UTF-8, and of its columns the first; None where all texts are UTF-8."""
    found = [bad for name, column in zip(batch.schema.names, batch.columns, strict=True) if (bad := _bad(name, column))]
    return min(found, key=lambda bad: bad.row, default=None)


def _bad(name: str, column: Array) -> BadText | None:
    found = _first_row(column)
    if found is None:
        return None
    row, error = found
    return BadText(row, name, f"has a text that is not UTF-8: {bad_byte(error)}")


def bad_byte(error: UnicodeDecodeError) -> str:
    """The byte that does not fit, its place in the text, from 1, and what is around it."""
    place = error.start
    around = error.object[max(0, place - _SHOWN) : place + _SHOWN].decode(errors="replace")
    return f"byte 0x{error.object[place]:02x} at place {place + 1}, near {around!r}"


def _first_row(column: Array) -> tuple[int, UnicodeDecodeError] | None:
    """The first row with a text that is not UTF-8, those in its lists, records and maps too."""
    import pyarrow as pa

    if not _holds_text(column.type):
        return None
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:  # of a text, or of something else
        return _first_undecodable(column)
    return None


def _first_undecodable(column: Array) -> tuple[int, UnicodeDecodeError] | None:
    for row in range(len(column)):
        try:
            column[row].as_py()
        except UnicodeDecodeError as error:
            return row, error
    return None


def _holds_text(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _holds_text(kind.value_type)
    if pa.types.is_nested(kind):
        return any(_holds_text(kind.field(number).type) for number in range(kind.num_fields))
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
