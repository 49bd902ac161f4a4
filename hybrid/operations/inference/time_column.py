"""Finds columns that hold times, their formats, and the bucket that suits their span."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from hybrid.errors import DataError, SpecError
from hybrid.operations.inference.column_sample import ColumnSample, TypeChoice
from hybrid.records.fields import UNFIT
from hybrid.schema.timeformat import TimeFormat
from hybrid.schema.types import DataType
from hybrid.schema.values import CONVERTERS, millis_of, to_timestamp

_HOUR_MS, _DAY_MS = 3_600_000, 86_400_000
# Numbers are times when they lie in the years 2000 to 2099, or 1975 to 2199 where the name says that they are times.
_LIKELY_MS = (946_684_800_000, 4_102_444_800_000)
_NAMED_MS = (157_766_400_000, 7_258_118_400_000)
_UNITS = ("SECONDS", "MILLISECONDS", "MICROSECONDS", "NANOSECONDS")
_DAYS = "1:DAYS"
_WHOLE = re.compile(r"[0-9]{8,19}", re.ASCII)
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}.*", re.ASCII)
# Java's patterns of texts that are no ISO 8601, by granularity. Where two fit, the first is taken and both are named.
_PATTERNS = (
    ("yyyy-MM-dd", _DAYS),
    ("yyyyMMdd", _DAYS),
    ("yyyy/MM/dd", _DAYS),
    ("dd.MM.yyyy", _DAYS),
    ("dd/MM/yyyy", _DAYS),
    ("MM/dd/yyyy", _DAYS),
    ("yyyyMMddHHmmss", "1:SECONDS"),
    ("yyyy/MM/dd HH:mm:ss", "1:SECONDS"),
    ("dd.MM.yyyy HH:mm:ss", "1:SECONDS"),
    ("dd/MM/yyyy HH:mm:ss", "1:SECONDS"),
    ("MM/dd/yyyy HH:mm:ss", "1:SECONDS"),
    ("dd/MMM/yyyy:HH:mm:ss Z", "1:SECONDS"),
    ("yyyyMMdd'T'HHmmssX", "1:SECONDS"),
    ("yyyy-MM-dd HH:mm:ss Z", "1:SECONDS"),
)
_BEST_NAMES = frozenset({"ts", "timestamp", "time", "datetime", "eventtime", "eventts", "eventtimestamp"})
_NAMED = re.compile(r"(?:^|[_.\s-])(?:ts|dt|day|at|when)(?:$|[_.\s-])|time|date|stamp|created", re.IGNORECASE)
_CAMEL = re.compile(r"[a-z](?:At|Ts|Day)$")
_LATER = re.compile(r"updated|modified|deleted|expir|valid|until|_to$", re.IGNORECASE)


_NUMBERS = frozenset({DataType.INT, DataType.LONG})


@dataclass(frozen=True)
class TimeChoice:
    """A column that holds times: the type that stores it, and `format` and `granularity` in Pinot's syntax.

    `first_ms` and `last_ms` are those of the sample. `nulls` counts its records without a time. `other` is a second
    pattern that fits the texts.
    """

    field: str
    data_type: DataType
    format: str
    granularity: str
    first_ms: int
    last_ms: int
    nulls: int
    other: str | None = None

    @property
    def rank(self) -> tuple[int, bool]:
        """The lower, the likelier this is the time of an event: by its name, no mere day."""
        return (self._place, self.granularity == _DAYS)

    @property
    def _place(self) -> int:
        if _LATER.search(self.field):
            return 3
        if re.sub(r"[^a-z]", "", self.field.lower()) in _BEST_NAMES:
            return 0
        return 1 if is_named_time(self.field) or self.data_type is DataType.TIMESTAMP else 2


def is_named_time(name: str) -> bool:
    """Whether a field's name says that it holds a time."""
    return bool(_NAMED.search(name) or _CAMEL.search(name))


def find_time(column: ColumnSample, choice: TypeChoice, *, is_meant: bool = False) -> TimeChoice | None:
    """How a column holds times; None when it does not. `is_meant`: somebody says that it does, whatever its name."""
    if choice.is_list or not column.values:
        return None
    named = is_meant or is_named_time(column.field)
    for data_type, form, granularity, other in _forms(column, choice, named=named):
        span = _span(column, data_type, form)
        if span is not None and (data_type not in _NUMBERS or _is_within(span, _NAMED_MS if named else _LIKELY_MS)):
            return TimeChoice(column.field, data_type, form, granularity, *span, column.nulls, other)
    return None


def bucket_of(time: TimeChoice) -> str:
    """The bucket of a span: at most some hundred buckets, and at least a day for times that are days."""
    span_ms = time.last_ms - time.first_ms
    if span_ms <= 2 * _DAY_MS and time.granularity != _DAYS:
        return "1h"
    return next((bucket for days, bucket in ((400, "1d"), (3000, "7d")) if span_ms <= days * _DAY_MS), "30d")


def _forms(column: ColumnSample, choice: TypeChoice, *, named: bool) -> Iterator[tuple[DataType, str, str, str | None]]:
    """The types, formats and granularities to try, and a second pattern that fits as well."""
    raw = [value.raw for value in column.values]
    if choice.data_type is DataType.TIMESTAMP:
        yield DataType.TIMESTAMP, "TIMESTAMP", "1:MILLISECONDS", None
    elif choice.data_type in {DataType.INT, DataType.LONG}:
        yield from _of_numbers(choice.data_type, named=named)
    elif choice.data_type is DataType.STRING and all(_is_date(value) for value in raw):
        yield DataType.STRING, f"{_DAYS}:SIMPLE_DATE_FORMAT:yyyy-MM-dd", _DAYS, None
    elif choice.data_type is DataType.STRING and all(isinstance(value, str) for value in raw):
        texts = [str(value) for value in raw]
        if all(map(_WHOLE.fullmatch, texts)):
            yield from _of_numbers(DataType.LONG, named=named)
        elif all(map(_ISO.fullmatch, texts)):
            yield DataType.TIMESTAMP, "TIMESTAMP", "1:MILLISECONDS", None
        yield from _of_patterns(texts)


def _of_numbers(data_type: DataType, *, named: bool) -> Iterator[tuple[DataType, str, str, str | None]]:
    for unit in _UNITS:
        if named or unit != "SECONDS":
            yield data_type, f"1:{unit}:EPOCH", f"1:{unit}", None
    if named:
        yield data_type, f"{_DAYS}:SIMPLE_DATE_FORMAT:yyyyMMdd", _DAYS, None


def _of_patterns(texts: Sequence[str]) -> Iterator[tuple[DataType, str, str, str | None]]:
    fitting = [(pattern, granularity) for pattern, granularity in _PATTERNS if _fits(pattern, texts)]
    if fitting:
        (pattern, granularity), *others = fitting
        unit = granularity.partition(":")[2]
        other = others[0][0] if others else None
        yield DataType.STRING, f"1:{unit}:SIMPLE_DATE_FORMAT:{pattern}", granularity, other


def _fits(pattern: str, texts: Sequence[str]) -> bool:
    form = TimeFormat.parse(f"1:DAYS:SIMPLE_DATE_FORMAT:{pattern}", "", "format", DataType.STRING)
    try:
        for text in texts:
            form.to_millis(text)
    except DataError:
        return False
    return True


def _is_date(value: object) -> bool:
    return isinstance(value, date) and not isinstance(value, datetime)


def _span(column: ColumnSample, data_type: DataType, text: str) -> tuple[int, int] | None:
    """The first and last time of a column read by a format, in ms; None when a value does not fit it."""
    try:
        form = TimeFormat.parse(text, "", "format", data_type)
        if data_type is DataType.TIMESTAMP:
            times = [millis_of(to_timestamp(value.raw)) for value in column.values]
        else:
            times = [_millis(form, data_type, value.raw) for value in column.values]
    except (DataError, SpecError, *UNFIT):
        return None
    return min(times), max(times)


def _is_within(span: tuple[int, int], years_ms: tuple[int, int]) -> bool:
    return years_ms[0] <= span[0] and span[1] < years_ms[1]


def _millis(form: TimeFormat, data_type: DataType, value: object) -> int:
    if isinstance(value, date):
        return millis_of(to_timestamp(value))
    return form.to_millis(CONVERTERS[data_type](value))
