"""The values of one column in a sample, and the type that holds all of them.

A type is proposed when every value of the sample converts to it by the converters of the decoder: what is proposed
accepts the sample. Whole numbers of JSON and CSV become LONG and fractions DOUBLE, as in DuckDB and ClickHouse,
because a sample of small numbers does not promise small ones.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from hybrid.operations.inference.record_sample import DeclaredType, SampledRecord
from hybrid.records.fields import UNFIT
from hybrid.records.outcome import shown
from hybrid.schema.jsontext import JsonFloat, parse_json
from hybrid.schema.types import DataType
from hybrid.schema.values import CONVERTERS

# A cell with a leading zero or plus sign is a code, such as a postal code or a phone number.
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]*)", re.ASCII)
_FRACTION = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
_LONGEST_NUMBER = 400


class ValueKind(StrEnum):
    """What a value is before it is converted, in words for messages."""

    BOOLEAN = "true or false"
    WHOLE = "a whole number"
    FRACTION = "a number with a fraction"
    DECIMAL = "a decimal number"
    MOMENT = "a time"
    DATE = "a date"
    TEXT = "a text"
    BYTES = "bytes"
    LIST = "a list"
    OBJECT = "an object"
    OTHER = "a value without a type here"


class SampledValue(NamedTuple):
    """A value that is not null: as it is written, and as it is meant where a cell of CSV holds a number or JSON."""

    place: str
    raw: object
    meant: object


@dataclass
class ColumnSample:
    """The values of a field. `records` counts the sample's records, of which the others lack it or have a null."""

    field: str
    records: int = 0
    values: list[SampledValue] = dataclass_field(default_factory=list)

    @property
    def nulls(self) -> int:
        """The number of records without a value."""
        return self.records - len(self.values)

    @cached_property
    def distinct(self) -> int:
        """The number of different values. It is counted once: read it when the sample is complete."""
        return len({repr(value.raw) for value in self.values})


class TypeChoice(NamedTuple):
    """The type of a column, and a sentence about what was not plain, or None."""

    data_type: DataType
    is_list: bool = False
    note: str | None = None


def columns_of(records: Sequence[SampledRecord], *, of_text: bool) -> list[ColumnSample]:
    """The fields of records, in order of appearance. `of_text`: values are cells of CSV."""
    columns: dict[str, ColumnSample] = {}
    for record in records:
        for name, value in record.values.items():
            column = columns.setdefault(str(name), ColumnSample(str(name)))
            if value is not None:
                column.values.append(SampledValue(record.place, value, meant(value) if of_text else value))
    for column in columns.values():
        column.records = len(records)
    return list(columns.values())


def choose_type(column: ColumnSample, declared: DeclaredType | None = None) -> TypeChoice | None:
    """The type of a column; None when no type stores its values."""
    kinds = {kind_of(value.meant): value for value in reversed(column.values)}
    if not kinds:
        return _of_nulls(declared)
    if declared is not None and _fits(column, declared.data_type, is_list=declared.is_list):
        return TypeChoice(*declared)
    if ValueKind.LIST in kinds and ValueKind.OBJECT not in kinds:
        several = _list_choice(column)
        if several is not None:
            return several
    for data_type in (*_candidates(column, set(kinds)), DataType.STRING):
        if _fits(column, data_type):
            return TypeChoice(data_type, note=_conflict(column, kinds, data_type))
    return _of_most(column)


def _of_most(column: ColumnSample) -> TypeChoice | None:
    """STRING where some values are texts that cannot be stored, such as half a surrogate pair; else None."""
    convert = CONVERTERS[DataType.STRING]
    unfit = [value for value in column.values if not _converts(convert, value.raw)]
    if len(unfit) == len(column.values):
        return None
    return TypeChoice(DataType.STRING, note=f"holds {shown(unfit[0].raw)} at {unfit[0].place}, which is no STRING.")


def _of_nulls(declared: DeclaredType | None) -> TypeChoice:
    if declared is not None:
        return TypeChoice(*declared)
    return TypeChoice(DataType.STRING, note="is null in the whole sample: STRING is a guess.")


def kind_of(value: object) -> ValueKind:
    """The kind of a value that is not null."""
    for type_, kind in _KINDS:
        if isinstance(value, type_):
            return kind
    return ValueKind.OTHER


_KINDS: tuple[tuple[type, ValueKind], ...] = (
    (bool, ValueKind.BOOLEAN),
    (int, ValueKind.WHOLE),
    (JsonFloat, ValueKind.FRACTION),
    (float, ValueKind.FRACTION),
    (Decimal, ValueKind.DECIMAL),
    (str, ValueKind.TEXT),
    (bytes, ValueKind.BYTES),
    (datetime, ValueKind.MOMENT),
    (date, ValueKind.DATE),
    (list, ValueKind.LIST),
    (tuple, ValueKind.LIST),
    (dict, ValueKind.OBJECT),
)
_NUMBERS = {ValueKind.WHOLE, ValueKind.FRACTION, ValueKind.DECIMAL}
_NESTED = {ValueKind.LIST, ValueKind.OBJECT}


def _candidates(column: ColumnSample, kinds: set[ValueKind]) -> Iterator[DataType]:
    """Types that may hold values of these kinds, the narrowest first. STRING, which holds nearly all, is left out."""
    if kinds == {ValueKind.BOOLEAN}:
        yield DataType.BOOLEAN
    elif kinds == {ValueKind.WHOLE}:
        yield from (DataType.LONG, DataType.BIG_DECIMAL)
    elif kinds <= _NUMBERS:
        is_exact = ValueKind.DECIMAL in kinds or not all(_is_double(value.meant) for value in column.values)
        yield from [DataType.BIG_DECIMAL] if is_exact else [DataType.DOUBLE]
        yield from [] if ValueKind.DECIMAL in kinds else [DataType.DOUBLE]
    elif kinds <= {ValueKind.MOMENT, ValueKind.DATE} and ValueKind.MOMENT in kinds:
        yield DataType.TIMESTAMP
    elif kinds == {ValueKind.BYTES}:
        yield DataType.BYTES
    elif kinds & _NESTED and ValueKind.TEXT not in kinds:
        yield DataType.JSON


def _list_choice(column: ColumnSample) -> TypeChoice | None:
    """The type of a column of lists: several values of a type, or None where JSON holds them better.

    A null in a list would become a default, and a list of several kinds would become texts.
    """
    elements = [element for value in column.values for element in _elements(value.meant)]
    inner = ColumnSample(column.field, len(elements))
    inner.values = [SampledValue("", element, element) for element in elements if element is not None]
    kinds = {kind_of(value.meant) for value in inner.values}
    if inner.nulls or kinds & {*_NESTED, ValueKind.OTHER, ValueKind.DATE}:
        return None
    if not kinds:
        return TypeChoice(DataType.STRING, is_list=True, note="has empty lists only: STRING[] is a guess.")
    for data_type in (*_candidates(inner, kinds), *([DataType.STRING] if kinds == {ValueKind.TEXT} else [])):
        if _fits(column, data_type, is_list=True):
            single = next((value for value in column.values if not isinstance(value.meant, (list, tuple))), None)
            note = f"is a list, and at {single.place} one value: a list of one." if single is not None else None
            return TypeChoice(data_type, is_list=True, note=note)
    return None


def type_in_texts(column: ColumnSample) -> tuple[DataType, bool] | None:
    """The type that takes all values where texts of them are numbers, or true and false; None in all other cases.

    And whether all of them are texts. Such a column is STRING: digits do not say whether they are a number or a code.
    """
    values = [element for value in column.values for element in _elements(value.meant) if element is not None]
    if not any(isinstance(value, str) for value in values):
        return None
    texts = ColumnSample(column.field, len(values), [SampledValue("", value, meant(value)) for value in values])
    kinds = {kind_of(value.meant) for value in texts.values}
    if kinds & {ValueKind.TEXT, *_NESTED}:
        return None
    fitting = (data_type for data_type in _candidates(texts, kinds) if _fits(texts, data_type))
    return next(((data_type, all(isinstance(value, str) for value in values)) for data_type in fitting), None)


def _elements(value: object) -> Iterable[object]:
    return value if isinstance(value, (list, tuple)) else (value,)


def _fits(column: ColumnSample, data_type: DataType, *, is_list: bool = False) -> bool:
    """Whether the decoder's converter accepts every value."""
    convert = CONVERTERS[data_type]
    if not is_list:
        return all(_converts(convert, value.raw) for value in column.values)
    return all(_converts(convert, element) for value in column.values for element in _elements(value.meant))


def _converts(convert: Callable[[object], object], value: object) -> bool:
    try:
        convert(value)
    except UNFIT:
        return False
    return True


def _is_double(value: object) -> bool:
    """Whether a DOUBLE holds a number with all its digits."""
    if isinstance(value, float):
        return True
    try:
        exact = Decimal(str(value))
        number = float(exact)
        return math.isfinite(number) and Decimal(repr(number)) == exact
    except (InvalidOperation, OverflowError, ValueError):
        return False


def _conflict(column: ColumnSample, first: dict[ValueKind, SampledValue], chosen: DataType) -> str | None:
    """A sentence about values of several kinds, with an example of the rarest; None where the type holds them all."""
    if len(first) == 1 or (chosen not in {DataType.STRING, DataType.JSON}):
        return _too_large(first, chosen)
    counts = {kind: 0 for kind in first}
    for value in column.values:
        counts[kind_of(value.meant)] += 1
    ordered = sorted(counts, key=lambda kind: -counts[kind])
    rare, example = ordered[-1], first[ordered[-1]]
    records = "record" if counts[ordered[0]] == 1 else "records"
    most, *others = [f"{kind} in {counts[kind]:,}" for kind in ordered]
    parts = " and ".join([f"{most} {records}", *others])
    return f"holds {parts}. {rare[0].upper()}{rare[1:]} is {shown(example.raw)} at {example.place}."


def _too_large(first: dict[ValueKind, SampledValue], chosen: DataType) -> str | None:
    if ValueKind.WHOLE in first and chosen in {DataType.STRING, DataType.BIG_DECIMAL} and len(first) == 1:
        return "has whole numbers that do not fit a LONG."
    if ValueKind.FRACTION in first and chosen is DataType.BIG_DECIMAL:
        return "has numbers with more digits than a DOUBLE keeps."
    return None


def meant(cell: object) -> object:
    """What a cell of CSV means: a boolean, a number, JSON, or itself."""
    if not isinstance(cell, str):
        return cell
    lower = cell.lower()
    if lower in {"true", "false"}:
        return lower == "true"
    if len(cell) <= _LONGEST_NUMBER and _WHOLE.fullmatch(cell):
        return int(cell)
    if len(cell) <= _LONGEST_NUMBER and _FRACTION.fullmatch(cell):
        return JsonFloat(cell)
    if (cell[:1], cell[-1:]) in {("{", "}"), ("[", "]")}:
        try:
            return parse_json(cell)
        except (ValueError, RecursionError):
            return cell
    return cell
