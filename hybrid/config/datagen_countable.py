"""Maps column types with countable values to ranges of whole numbers, for `datagen`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal

from hybrid.config.connectors import DatagenField
from hybrid.schema.schema import FieldSpec
from hybrid.schema.sqltypes import DIGITS_BEFORE_MAX, DIGITS_BEHIND_MAX, parse_sql_type
from hybrid.schema.types import DataType
from hybrid.schema.values import EPOCH, INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, millis_of, to_timestamp

Bound = int | float | str | None

_DAY_MS = 86_400_000
_MS_2100 = 4_102_444_800_000
_DAYS_2100 = 54_787
_EXACT = Context(prec=2 * (DIGITS_BEFORE_MAX + DIGITS_BEHIND_MAX))


@dataclass(frozen=True)
class Countable:
    """A type as whole numbers. Without a range the values are from `low` up to, not including, `high`.

    `read` converts a limit of a range, `dress` a number to a value. `first` is where increments without a range begin,
    `units` how many numbers a step is.
    """

    low: int
    high: int
    dress: Callable[[int], object]
    read: Callable[[Bound], int]
    first: int = 0
    units: int = 1

    def bounds(self, how: DatagenField) -> tuple[int, int]:
        """The range of whole numbers. ValueError says what is wrong with the range of `how`."""
        if how.low is None:
            return self.low, self.high
        try:
            low, high = self.read(how.low), self.read(how.high)
        except (ValueError, OverflowError, TypeError) as error:
            raise ValueError(f"range: [{how.low!r}, {how.high!r}] does not fit the column: {error}.") from None
        if low >= high:
            raise ValueError(f"range: [{how.low!r}, {how.high!r}] holds nothing.")
        return low, high


def countable_of(field: FieldSpec, how: DatagenField) -> Countable | None:
    """The column's type as whole numbers; None for floating-point numbers, texts and bytes."""
    kind, name = field.data_type, parse_sql_type(field.sql_type, field.name).name if field.sql_type else ""
    instant = field.time_format is not None and name != "DATE" and (kind is DataType.STRING or isinstance(how.low, str))
    if kind is DataType.TIMESTAMP or instant:
        return Countable(0, _MS_2100, lambda ms: EPOCH + timedelta(milliseconds=ms), _read_instant)
    if name == "DATE":
        return Countable(0, _DAYS_2100, lambda days: (EPOCH + timedelta(days=days)).date().isoformat(), _read_date)
    if name == "TIME":
        return Countable(0, _DAY_MS, lambda ms: (EPOCH + timedelta(milliseconds=ms)).time().isoformat(), _read_time)
    if kind is DataType.BOOLEAN:
        return Countable(0, 2, bool, _read_whole)
    if kind is DataType.BIG_DECIMAL:
        return _decimal(field)
    sizes = {"TINYINT": 2**7, "SMALLINT": 2**15}
    if kind is DataType.INT:
        most = sizes.get(name, INT_MAX + 1)
        return Countable(-most if name in sizes else INT_MIN, most, int, _read_whole)
    if kind in (DataType.LONG, DataType.JSON):
        return Countable(LONG_MIN, LONG_MAX + 1, int, _read_whole)
    return None


def _decimal(field: FieldSpec) -> Countable:
    before, behind = DIGITS_BEFORE_MAX, DIGITS_BEHIND_MAX
    if field.sql_type:
        kind = parse_sql_type(field.sql_type, field.name)
        digits, scale = kind.length or 0, kind.scale or 0
        before, behind = min(before, digits - scale), min(behind, scale)
    units, most = 10**behind, 10 ** (before + behind)

    def read(bound: Bound) -> int:
        if isinstance(bound, str):
            raise ValueError("it must hold numbers")
        return int(_EXACT.multiply(Decimal(repr(bound)), Decimal(units)))

    return Countable(-most + 1, most, lambda number: Decimal(number).scaleb(-behind, _EXACT), read, units=units)


def _read_whole(bound: Bound) -> int:
    if not isinstance(bound, (int, float)) or bound != int(bound):
        raise ValueError("it must hold whole numbers")
    return int(bound)


def _read_instant(bound: Bound) -> int:
    return millis_of(to_timestamp(bound)) if isinstance(bound, str) else _read_whole(bound)


def _read_date(bound: Bound) -> int:
    return (date.fromisoformat(bound) - EPOCH.date()).days if isinstance(bound, str) else _read_whole(bound)


def _read_time(bound: Bound) -> int:
    if not isinstance(bound, str):
        return _read_whole(bound)
    return millis_of(datetime.combine(EPOCH.date(), time.fromisoformat(bound), UTC))
