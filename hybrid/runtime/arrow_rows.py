"""Rows of Arrow batches as Python values, up to the first value that Python cannot take.

Arrow and Spark pass texts on as bytes that nobody has checked. Python decodes them, and its error names neither row nor
column. A map becomes a dict, which has a key once; Arrow's and Parquet's maps are lists of pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pyarrow import Array, RecordBatch


# So many bytes before and behind a wrong one are shown.
_SHOWN = 20
# In Arrow's errors for a map with one key twice, also where the map is part of a record.
_REPEATED = "duplicate"


class BadValue(NamedTuple):
    """A value that Python cannot take: its row in the batch from 0, its column, why, and what to do about it.

    `reason` is the end of a sentence, `remedy` one of its own.
    """

    row: int
    column: str
    reason: str
    remedy: str


class UnreadableValueError(Exception):
    """A row has a value that Python cannot take. All rows before it were returned."""

    def __init__(self, found: BadValue) -> None:
        super().__init__(f"column '{found.column}' {found.reason}. {found.remedy}")
        self.found = found


def rows_of(batch: RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows of a batch, maps as dicts. UnreadableValueError behind the last row before a bad value."""
    try:
        rows = batch.to_pylist(maps_as_pydicts="strict")
    except (ValueError, KeyError):  # a UnicodeDecodeError is a ValueError
        found = first_bad_value(batch)
        if found is None:
            raise
        yield from batch.slice(0, found.row).to_pylist(maps_as_pydicts="strict")
        raise UnreadableValueError(found) from None
    yield from rows


def values_of(column: Array) -> list[Any]:
    """The values of a column in which `first_bad_value` finds none, maps as dicts."""
    values: list[Any] = column.to_pylist(maps_as_pydicts="strict")
    return values


def first_bad_value(batch: RecordBatch) -> BadValue | None:
    """The first row with a text that is not UTF-8 or a map with one key twice, and of its columns the first."""
    found = [bad for name, column in zip(batch.schema.names, batch.columns, strict=True) if (bad := _bad(name, column))]
    return min(found, key=lambda bad: bad.row, default=None)


def bad_byte(error: UnicodeDecodeError) -> str:
    """The byte that does not fit, its place in the text, from 1, and what is around it."""
    place = error.start
    around = error.object[max(0, place - _SHOWN) : place + _SHOWN].decode(errors="replace")
    return f"byte 0x{error.object[place]:02x} at place {place + 1}, near {around!r}"


def _bad(name: str, column: Array) -> BadValue | None:
    import pyarrow as pa

    try:
        if _holds(column.type, pa.types.is_map):
            values_of(column)
        elif _holds(column.type, _is_text):
            column.validate(full=True)
        return None
    except (ValueError, KeyError):  # of these values, or of something else; ArrowInvalid is a ValueError
        return _first_unreadable(name, column)


def _first_unreadable(name: str, column: Array) -> BadValue | None:
    for row in range(len(column)):
        try:
            column[row].as_py(maps_as_pydicts="strict")
        except UnicodeDecodeError as error:
            reason = f"has a text that is not UTF-8: {bad_byte(error)}"
            return BadValue(row, name, reason, "Convert the file to UTF-8 first")
        except (ValueError, KeyError) as error:
            if _REPEATED not in str(error):
                return None
            return BadValue(row, name, "has a map with one key twice", "Give each key of a map one value")
    return None


def _holds(kind: Any, is_wanted: Callable[[Any], bool]) -> bool:
    """Whether values of an Arrow type have parts of a wanted type, or are of it."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _holds(kind.value_type, is_wanted)
    if is_wanted(kind):
        return True
    parts = range(kind.num_fields) if pa.types.is_nested(kind) else ()
    return any(_holds(kind.field(number).type, is_wanted) for number in parts)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
