"""The values that `datagen` generates: a maker per column, a pure function of seed, plan and row number.

After Feldera's page on it and its crates/adapters/src/transport/datagen.rs. A value of a countable type (integers,
decimals, instants, dates, times, booleans) is a whole number in a range, converted to the column's type.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from fractions import Fraction

from hybrid.config.connectors import DatagenField, DatagenPlan, DatagenStrategy
from hybrid.config.datagen_countable import Countable, countable_of
from hybrid.config.dice import Dice, key_of
from hybrid.schema.schema import FieldSpec
from hybrid.schema.sqltypes import parse_sql_type
from hybrid.schema.sqlvalues import sql_column
from hybrid.schema.types import DataType
from hybrid.schema.values import CONVERTERS

Maker = Callable[[int], object]
_LENGTH_MAX = 25  # of a text without a range
_ITEMS_MAX = 5  # of a list, and of bytes, without a range
_DOUBLE_MAX, _FLOAT_MAX = 1.7976931348623157e308, 3.4028234e38
_LETTERS = string.ascii_uppercase + string.ascii_lowercase + string.digits


def record_maker(
    fields: tuple[FieldSpec, ...], plan: DatagenPlan, seed: int, number: int, *, any_case: bool
) -> Callable[[int], Mapping[str, object]]:
    """A function from a row number to its record, for plan `number`. ValueError says what does not fit a column."""
    field_plans = {name.lower() if any_case else name: how for name, how in plan.fields.items()}
    makers = [
        (field.name, value_maker(field, field_plans.get(field.name, DatagenField()), key_of(seed, number, field.name)))
        for field in fields
    ]
    return lambda row: {name: make(row) for name, make in makers}


def value_maker(field: FieldSpec, how: DatagenField, key: int) -> Maker:
    """A function from a row number, from 0 on, to the column's value; `key` seeds its dice. ValueError as above."""
    if how.values is not None:
        make = _listed(field, how.values, how, key)
    elif not field.single_value:
        element = _maker_of(field, how.value or DatagenField(), key_of(key, "value"))
        make = _several(element, how, key)
    else:
        make = _maker_of(field, how, key)
    return _with_nulls(make, how.null_percentage, key_of(key, "null")) if how.null_percentage else make


def _with_nulls(make: Maker, percentage: int, key: int) -> Maker:
    return lambda row: None if Dice(key, row).below(100) < percentage else make(row)


def _listed(field: FieldSpec, values: tuple[object, ...], how: DatagenField, key: int) -> Maker:
    if not values:
        return lambda row: None
    if field.single_value and field.time_format is None:
        _check_values(field, values)
    place = _places(len(values), how, key)
    return lambda row: values[place(row)]


def _check_values(field: FieldSpec, values: tuple[object, ...]) -> None:
    convert, expected = CONVERTERS[field.data_type], str(field.data_type)
    if field.sql_type:
        convert, expected = sql_column(field.sql_type, field.data_type)
    for value in values:
        try:
            convert(value) if value is not None else None
        except (ValueError, ArithmeticError, TypeError, LookupError):
            raise ValueError(f"values: {value!r} does not fit. It must be {expected}.") from None


def _places(count: int, how: DatagenField, key: int) -> Callable[[int], int]:
    """A function from a row number to a number from 0 to `count` - 1, as the strategy chooses it."""
    if how.strategy is DatagenStrategy.INCREMENT:
        return lambda row: row % count
    if how.strategy is DatagenStrategy.UNIFORM:
        return lambda row: Dice(key, row).below(count)
    return lambda row: Dice(key, row).zipf(count, how.exponent)


def _maker_of(field: FieldSpec, how: DatagenField, key: int) -> Maker:
    """The maker of a single value of the column's type."""
    countable = countable_of(field, how)
    if countable is not None:
        return _counted(countable, how, key)
    if field.data_type in (DataType.FLOAT, DataType.DOUBLE):
        return _floating(_FLOAT_MAX if field.data_type is DataType.FLOAT else _DOUBLE_MAX, how, key)
    if field.data_type is DataType.BYTES:
        byte = FieldSpec(field.name, DataType.INT, field.kind)
        make = _several(_maker_of(byte, how.value or DatagenField(low=0, high=256), key_of(key, "value")), how, key)
        return lambda row: _bytes(make(row))
    return _text(field, how, key)


def _counted(kind: Countable, how: DatagenField, key: int) -> Maker:
    low, high = kind.bounds(how)
    dress, scale = kind.dress, Fraction(str(how.scale))
    if how.strategy is DatagenStrategy.INCREMENT:
        step, first = scale * kind.units, low if how.low is not None else kind.first
        if step.denominator != 1:
            raise ValueError(f"scale: {how.scale} is no whole number of the column's steps.")
        by, around = int(step), high - first
        return lambda row: dress(first + row * by % around)
    start = low if how.strategy is DatagenStrategy.UNIFORM or how.low is not None else kind.first
    place = _places(high - start, how, key)
    if how.strategy is DatagenStrategy.UNIFORM and scale != 1:
        return lambda row: dress(int((start + place(row)) * scale))
    return lambda row: dress(start + place(row))


def _floating(most: float, how: DatagenField, key: int) -> Maker:
    if isinstance(how.low, str) or isinstance(how.high, str):
        raise ValueError(f"range: [{how.low!r}, {how.high!r}] must hold numbers.")
    low, high = (-most, most) if how.low is None or how.high is None else (float(how.low), float(how.high))
    scale, first = how.scale, 0.0 if how.low is None else low
    if how.strategy is DatagenStrategy.INCREMENT:
        return lambda row: first + row * scale % (high - first)
    if how.strategy is DatagenStrategy.ZIPF:
        place = _places(max(1, int(high - first)), how, key)
        return lambda row: first + place(row)

    def between(row: int) -> float:
        unit = Dice(key, row).unit()
        return (low * (1 - unit) + high * unit) * scale

    return between


def _text(field: FieldSpec, how: DatagenField, key: int) -> Maker:
    """The maker of a text: a number as text, or letters and digits. The range is that of its length."""
    kind = parse_sql_type(field.sql_type, field.name) if field.sql_type else None
    most = min(_LENGTH_MAX, kind.length + 1 if kind is not None and kind.length is not None else _LENGTH_MAX)
    low, high = _lengths(how, most)
    if how.strategy is DatagenStrategy.INCREMENT:
        by = int(how.scale)
        if by != how.scale:
            raise ValueError(f"scale: {how.scale} is no whole number.")
        return lambda row: str(row * by)
    place = _places(high - low, how, key)

    def letters(row: int) -> str:
        dice = Dice(key_of(key, "letters"), row)
        return "".join(_LETTERS[dice.below(len(_LETTERS))] for _ in range(low + place(row)))

    return letters


def _several(one: Maker, how: DatagenField, key: int) -> Maker:
    """The maker of a list whose length is in the range. Each element has its own number, but increments count rows."""
    low, high = _lengths(how, _ITEMS_MAX)
    place, wide = _places(high - low, how, key), max(1, high)
    counts = how.value is None or how.value.strategy is DatagenStrategy.INCREMENT

    def items(row: int) -> list[object]:
        return [one(row if counts else row * wide + at) for at in range(low + place(row))]

    return items


def _lengths(how: DatagenField, most: int) -> tuple[int, int]:
    if how.low is None or how.high is None:
        return 0, most
    low, high = how.low, how.high
    if not isinstance(low, int) or not isinstance(high, int) or low < 0:
        raise ValueError(f"range: [{low!r}, {high!r}] is that of a length: whole numbers from 0 on.")
    return low, high


def _bytes(values: object) -> bytes:
    assert isinstance(values, list)
    return bytes(int(value) % 256 for value in values)
