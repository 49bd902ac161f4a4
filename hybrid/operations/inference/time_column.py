"""Finds columns that hold times, their formats, and the bucket that suits their span."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import NamedTuple

from hybrid.errors import DataError, SpecError
from hybrid.operations.inference.column_sample import ColumnSample, SampledValue, TypeChoice, ValueKind, kind_of
from hybrid.records.fields import UNFIT
from hybrid.records.outcome import shown
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
_DATE_PATTERN = "yyyy-MM-dd"
_PATTERNS = (
    (_DATE_PATTERN, _DAYS),
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
# A form that fits none of about so many values is not tried on the others: most forms fit none at all.
_PROBED = 20
_NUMBERS = frozenset({DataType.INT, DataType.LONG})


class TimeNotation(NamedTuple):
    """A way to write times: the type that stores them, and format and granularity in Pinot's syntax.

    `words` name it in messages. `matches` says whether a value looks like it. Numbers outside of `years_ms` are no
    times. `pattern` is that of texts.
    """

    data_type: DataType
    format: str
    granularity: str
    words: str
    matches: Callable[[object], bool]
    years_ms: tuple[int, int] | None = None
    pattern: str | None = None


@dataclass(frozen=True)
class TimeChoice:
    """A column that holds times: the type that stores it, and `format` and `granularity` in Pinot's syntax.

    `first_ms` and `last_ms` are those of the sample. `nulls` counts its records without a time. `other` is a second
    pattern that fits the texts. `misfits` are those of the `values` that are no such times, and `are_unreadable` says
    that the decoder rejects all of them. `words` name the format in messages.
    """

    field: str
    data_type: DataType
    format: str
    granularity: str
    first_ms: int
    last_ms: int
    nulls: int
    values: int
    words: str
    other: str | None = None
    misfits: Sequence[SampledValue] = ()
    are_unreadable: bool = True

    def misfit_sentence(self, name: str) -> str:
        """How many values of the column `name` are times, and the first one that is not."""
        first, *more = self.misfits
        others = "" if not more else f" and {len(more):,} other{'s' if len(more) > 1 else ''}"
        return (
            f"'{name}': {self.values - len(self.misfits):,} of {self.values:,} values are {self.words}; "
            f"{shown(first.raw)} at {first.place}{others} {'are' if more else 'is'} not."
        )

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


def find_time(
    column: ColumnSample, choice: TypeChoice, *, is_meant: bool = False, misfits_max_percent: int = 0
) -> TimeChoice | None:
    """How a column holds times; None when more than `misfits_max_percent` of its values are none of one format.

    `is_meant`: somebody says that it holds times, whatever its name.
    """
    if choice.is_list or not column.values:
        return None
    misfits_max = len(column.values) * misfits_max_percent // 100
    fits: list[tuple[TimeNotation, TimeChoice]] = []
    for form in _forms(choice, named=is_meant or is_named_time(column.field)):
        time = _tried(column, form, misfits_max)
        if time is not None and not time.misfits and form.pattern is None:
            return time
        if time is not None:
            fits.append((form, time))
    if not fits:
        return None
    fewest = min(len(time.misfits) for _, time in fits)
    (form, best), *others = [(form, time) for form, time in fits if len(time.misfits) == fewest]
    return replace(best, other=others[0][0].pattern if others and form.pattern is not None else None)


def bucket_of(time: TimeChoice) -> str:
    """The bucket of a span: at most some hundred buckets, and at least a day for times that are days."""
    span_ms = time.last_ms - time.first_ms
    if span_ms <= 2 * _DAY_MS and time.granularity != _DAYS:
        return "1h"
    return next((bucket for days, bucket in ((400, "1d"), (3000, "7d")) if span_ms <= days * _DAY_MS), "30d")


def _forms(choice: TypeChoice, *, named: bool) -> Iterator[TimeNotation]:
    """The forms to try, the likeliest first. `named`: the name says that the values are times."""
    if choice.data_type is DataType.TIMESTAMP:
        yield TimeNotation(DataType.TIMESTAMP, "TIMESTAMP", "1:MILLISECONDS", "times", lambda value: True)
    elif choice.data_type in _NUMBERS:
        yield from _of_numbers(choice.data_type, named=named)
    else:
        yield from _of_numbers(DataType.LONG, named=named)
        yield TimeNotation(DataType.TIMESTAMP, "TIMESTAMP", "1:MILLISECONDS", "ISO 8601", _is_iso)
        yield from _of_patterns()


def _of_numbers(data_type: DataType, *, named: bool) -> Iterator[TimeNotation]:
    years_ms = _NAMED_MS if named else _LIKELY_MS
    for unit in _UNITS:
        if named or unit != "SECONDS":
            words = f"epoch {unit.lower()} of likely years"
            yield TimeNotation(data_type, f"1:{unit}:EPOCH", f"1:{unit}", words, _is_whole, years_ms)
    if named:
        words, form = "days of the pattern yyyyMMdd", f"{_DAYS}:SIMPLE_DATE_FORMAT:yyyyMMdd"
        yield TimeNotation(data_type, form, _DAYS, words, _is_whole, years_ms)


def _of_patterns() -> Iterator[TimeNotation]:
    for pattern, granularity in _PATTERNS:
        unit = granularity.partition(":")[2]
        matches = _is_date_or_text if pattern == _DATE_PATTERN else _is_text_with_digit
        form, words = f"1:{unit}:SIMPLE_DATE_FORMAT:{pattern}", f"times of the pattern {pattern}"
        yield TimeNotation(DataType.STRING, form, granularity, words, matches, pattern=pattern)


def _is_whole(value: object) -> bool:
    kind = kind_of(value)
    return kind is ValueKind.WHOLE or (kind is ValueKind.TEXT and _WHOLE.fullmatch(str(value)) is not None)


def _is_iso(value: object) -> bool:
    return kind_of(value) is ValueKind.TEXT and _ISO.fullmatch(str(value)) is not None


def _is_text_with_digit(value: object) -> bool:
    """Whether a text begins as all patterns do. Reading a text by a pattern that does not fit it is slow."""
    return kind_of(value) is ValueKind.TEXT and str(value).strip()[:1].isdigit()


def _is_date_or_text(value: object) -> bool:
    return kind_of(value) is ValueKind.DATE or _is_text_with_digit(value)


def _tried(column: ColumnSample, form: TimeNotation, misfits_max: int) -> TimeChoice | None:
    """A column read by a form; None when more than `misfits_max` values do not fit it.

    Also None when no value of a probe, spread over the sample, fits it.
    """
    try:
        time_format = TimeFormat.parse(form.format, "", "format", form.data_type)
    except SpecError:
        return None
    probe = column.values[:: max(1, len(column.values) // _PROBED)]
    if all(_time_ms(time_format, form, value.raw) is None for value in probe):
        return None
    times_ms, misfits = list[int](), list[SampledValue]()
    for value in column.values:
        time_ms = _time_ms(time_format, form, value.raw)
        if time_ms is not None:
            times_ms.append(time_ms)
        elif len(misfits) < misfits_max:
            misfits.append(value)
        else:
            return None
    return TimeChoice(
        column.field,
        form.data_type,
        form.format,
        form.granularity,
        min(times_ms),
        max(times_ms),
        column.nulls,
        len(column.values),
        form.words,
        misfits=misfits,
        are_unreadable=all(_read(time_format, form.data_type, value.raw) is None for value in misfits),
    )


def _read(time_format: TimeFormat, data_type: DataType, value: object) -> int | None:
    """The time of a value in ms, as the decoder reads it; None when it does not."""
    try:
        if data_type is DataType.TIMESTAMP or isinstance(value, date):
            return millis_of(to_timestamp(value))
        return time_format.to_millis(CONVERTERS[data_type](value))
    except (DataError, *UNFIT):
        return None


def _time_ms(time_format: TimeFormat, form: TimeNotation, value: object) -> int | None:
    """The time of a value that is written by a form; None for other values, also where the decoder reads them."""
    time_ms = _read(time_format, form.data_type, value) if form.matches(value) else None
    if time_ms is None or form.years_ms is None:
        return time_ms
    first_ms, end_ms = form.years_ms
    return time_ms if first_ms <= time_ms < end_ms else None
