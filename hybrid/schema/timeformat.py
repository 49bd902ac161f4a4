"""Pinot's `format` of a dateTime field: it converts between stored values and epoch milliseconds.

Both syntaxes are read: `1:MILLISECONDS:EPOCH`, `1:DAYS:SIMPLE_DATE_FORMAT:yyyyMMdd tz(Asia/Tokyo)`,
`1:SECONDS:TIMESTAMP` and `EPOCH|SECONDS|5`, `SIMPLE_DATE_FORMAT|yyyy-MM-dd|Europe/Berlin`, `TIMESTAMP`. The default
zone is UTC.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from zoneinfo import ZoneInfo

from hybrid.errors import DataError, SpecError, suggestion
from hybrid.schema.datepattern import UnsupportedPattern, compile_pattern
from hybrid.schema.types import DataType

# The first and the last millisecond of the years 1 to 9999, which datetimes, Spark and DuckDB can all represent.
MIN_MS = -62_135_596_800_000
MAX_MS = 253_402_300_799_999

UNITS_NS = {
    "NANOSECONDS": 1,
    "MICROSECONDS": 1000,
    "MILLISECONDS": 1_000_000,
    "SECONDS": 1_000_000_000,
    "MINUTES": 60_000_000_000,
    "HOURS": 3_600_000_000_000,
    "DAYS": 86_400_000_000_000,
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_DAY = datetime(2001, 1, 2, 3, 4, 5, 6000, tzinfo=UTC)  # each part of it begins with zeros
_ONE_MS = timedelta(milliseconds=1)
_WHOLE = re.compile(r"\s*[+-]?[0-9]{1,30}\s*", re.ASCII)
_EXAMPLES = "Write it like '1:MILLISECONDS:EPOCH', 'SIMPLE_DATE_FORMAT|yyyy-MM-dd' or 'TIMESTAMP'."


class TimeKind(StrEnum):
    """The three kinds of Pinot's time formats."""

    EPOCH = "EPOCH"
    PATTERN = "SIMPLE_DATE_FORMAT"
    TIMESTAMP = "TIMESTAMP"


@dataclass(frozen=True)
class TimeFormat:
    """A parsed format. `step_ns` is the length of an EPOCH step (unit times size); `pattern`, `zone` are of a pattern.

    `data_type` is the field's, so that `from_millis` returns a value as it is stored.
    """

    text: str
    kind: TimeKind
    data_type: DataType = DataType.LONG
    step_ns: int = 1_000_000
    pattern: str = ""
    zone: str = "UTC"

    @classmethod
    def parse(cls, text: object, source: str, path: str, data_type: DataType = DataType.LONG) -> TimeFormat:
        """The format that `text` names. SpecError at `source`, `path` for anything else."""
        if not isinstance(text, str) or not text.strip():
            raise SpecError.at(source, path, f"{text!r} is not a time format. {_EXAMPLES}")
        return _parse(text.strip(), source, path, data_type)

    @property
    def is_millis(self) -> bool:
        """Whether the stored number is epoch milliseconds."""
        return self.kind is TimeKind.EPOCH and self.step_ns == 1_000_000 and self.data_type is not DataType.STRING

    def to_millis(self, value: object) -> int:
        """Epoch milliseconds of a stored value, rounded down. DataError also outside of the years 1 to 9999."""
        try:
            millis = self._millis(value)
        except (ValueError, OverflowError, TypeError):
            millis = None
        if millis is None or not MIN_MS <= millis <= MAX_MS:
            raise DataError(f"{str(value)[:100]!r} is not a time in the format '{self.text}' in the years 1 to 9999.")
        return millis

    def from_millis(self, millis: int) -> object:
        """The stored value of the step, day or instant that contains `millis`: int, str, or datetime for TIMESTAMP."""
        if self.kind is TimeKind.EPOCH:
            stored: object = millis * 1_000_000 // self.step_ns
        elif self.kind is TimeKind.TIMESTAMP:
            stored = millis
        else:
            stored = compile_pattern(self.pattern).format((_EPOCH + millis * _ONE_MS).astimezone(self._zone))
        return self._typed(stored, millis)

    def last_in_milli(self, millis: int) -> object:
        """The last stored value whose time is `millis`: a format finer than milliseconds has several."""
        if self.kind is TimeKind.EPOCH:
            return self._typed(((millis + 1) * 1_000_000 - 1) // self.step_ns, millis)
        if self.kind is TimeKind.PATTERN and self.is_finer_than_millis:
            moment = _EPOCH + millis * _ONE_MS + timedelta(microseconds=999)
            return self._typed(compile_pattern(self.pattern).format_last(moment.astimezone(self._zone)), millis)
        return self.from_millis(millis)

    @property
    def is_finer_than_millis(self) -> bool:
        """Whether several stored values share an epoch millisecond. A TIMESTAMP counts milliseconds, as in Pinot."""
        if self.kind is TimeKind.PATTERN:
            moments = (_EPOCH, _EPOCH + timedelta(microseconds=1), _EPOCH + timedelta(microseconds=100))
            return len({compile_pattern(self.pattern).format(moment) for moment in moments}) > 1
        return self.kind is TimeKind.EPOCH and self.step_ns < 1_000_000

    @property
    def unreadable_text(self) -> str | None:
        """The text of a time of which a number loses the zeros in front, so that it cannot be read; None without any.

        Years before 1000 do not count.
        """
        if self.kind is not TimeKind.PATTERN or self.data_type not in (DataType.INT, DataType.LONG):
            return None
        text = compile_pattern(self.pattern).format(_FIRST_DAY.astimezone(self._zone))
        try:
            is_read = self.to_millis(int(text)) == self.to_millis(text)
        except (DataError, ValueError):
            is_read = False
        return None if is_read else text

    @property
    def _zone(self) -> tzinfo:
        return UTC if self.zone == "UTC" else ZoneInfo(self.zone)

    def _typed(self, stored: object, millis: int) -> object:
        if self.data_type is DataType.TIMESTAMP:
            return _EPOCH + millis * _ONE_MS
        if self.data_type is DataType.STRING:
            return str(stored)
        return int(str(stored))

    def _millis(self, value: object) -> int:
        if isinstance(value, datetime):
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).__sub__(_EPOCH) // _ONE_MS
        if self.kind is TimeKind.PATTERN:
            return (compile_pattern(self.pattern).parse(str(value), self._zone) - _EPOCH) // _ONE_MS
        return _whole(value) * self.step_ns // 1_000_000


def _whole(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    raise ValueError("not a whole number")


def _parse(text: str, source: str, path: str, data_type: DataType) -> TimeFormat:
    if "|" in text or text.upper() in set(TimeKind):
        kind, *rest = (part.strip() for part in text.split("|"))
        if kind.upper() == TimeKind.PATTERN:
            pattern, zone = [*rest, "", ""][:2]
            return _pattern(text, pattern, zone, source, path, data_type)
        unit, size = (rest[0] if rest else "MILLISECONDS"), (rest[1] if len(rest) > 1 else "1")
    else:
        size, unit, kind, *rest = [*text.split(":", 3), "", ""][:4]
        if kind.upper() == TimeKind.PATTERN:
            pattern, zone = _old_zone(rest[0])
            return _pattern(text, pattern, zone, source, path, data_type)
    if kind.upper() == TimeKind.EPOCH:
        return TimeFormat(text, TimeKind.EPOCH, data_type, _step(size, unit, source, path))
    if kind.upper() == TimeKind.TIMESTAMP:
        return TimeFormat(text, TimeKind.TIMESTAMP, data_type)
    raise SpecError.at(source, path, f"'{text}' is not a time format. {_EXAMPLES}")


def _step(size: str, unit: str, source: str, path: str) -> int:
    if unit.upper() not in UNITS_NS:
        hint = suggestion(unit.upper(), UNITS_NS) or f" Known are {', '.join(UNITS_NS)}."
        raise SpecError.at(source, path, f"'{unit}' is not a time unit.{hint}")
    if not re.fullmatch(r"[0-9]{1,9}", size) or int(size) == 0:
        raise SpecError.at(source, path, f"'{size}' is not a size of a time unit: a whole number from 1 on.")
    return int(size) * UNITS_NS[unit.upper()]


def _old_zone(text: str) -> tuple[str, str]:
    """`yyyyMMdd tz(Europe/Berlin)` as pattern and zone."""
    match = re.fullmatch(r"(.*?)\s*tz\(\s*([^)]*?)\s*\)", text)
    return (match[1], match[2]) if match else (text, "")


def _pattern(text: str, pattern: str, zone: str, source: str, path: str, data_type: DataType) -> TimeFormat:
    if not pattern:
        raise SpecError.at(source, path, f"'{text}' has no date pattern. {_EXAMPLES}")
    try:
        compile_pattern(pattern)
    except UnsupportedPattern as error:
        raise SpecError.at(source, path, f"the date pattern '{pattern}' cannot be read: {error}.") from error
    form = TimeFormat(text, TimeKind.PATTERN, data_type, pattern=pattern, zone=_known_zone(zone, source, path))
    _check_printable(form, source, path)
    return form


def _known_zone(zone: str, source: str, path: str) -> str:
    if not zone or zone in {"Z", "GMT", "UTC"}:
        return "UTC"
    try:
        ZoneInfo(zone)
    except (ValueError, OSError, KeyError) as error:
        raise SpecError.at(source, path, f"'{zone}' is not a time zone. Write it like 'Europe/Berlin'.") from error
    return zone


def _check_printable(form: TimeFormat, source: str, path: str) -> None:
    """SpecError for a numeric field whose pattern does not consist of digits."""
    try:
        form.from_millis(0)
    except ValueError as error:
        message = f"the pattern '{form.pattern}' does not give a number, but the field's dataType is {form.data_type}."
        raise SpecError.at(source, path, message, hint='Set "dataType": "STRING".') from error
