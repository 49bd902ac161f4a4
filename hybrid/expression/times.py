"""Time functions of expressions, after Pinot's DateTimeFunctions and DateTimeConvert.

Times are epoch milliseconds unless a unit is given, and in UTC unless a zone is given. Conversion to larger units
truncates towards zero, as in Java and in queries.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, timedelta, tzinfo

from hybrid.expression.arguments import shown, text, whole
from hybrid.expression.constants import (
    date_pattern,
    duration,
    granularity,
    step,
    time_format,
    trunc_unit,
    unit_ns,
    zone,
)  # fmt: skip
from hybrid.expression.rules import Rule
from hybrid.schema.datepattern import DatePattern
from hybrid.schema.jsontext import JsonFloat
from hybrid.schema.timeformat import MAX_MS, MIN_MS, UNITS_NS, TimeFormat
from hybrid.schema.values import EPOCH, micros_of, millis_of, to_timestamp

_MS = 1_000_000
_ONE_MS = timedelta(milliseconds=1)
_UNITS = {"Seconds": 1000, "Minutes": 60_000, "Hours": 3_600_000, "Days": 86_400_000}
_FIXED_MS = {"millisecond": 1, "second": 1000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000,
             "week": 7 * 86_400_000}  # fmt: skip
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


def moment(value: object, where: tzinfo = UTC) -> datetime:
    """The instant of epoch milliseconds, in a zone."""
    millis = whole(value)
    if not MIN_MS <= millis <= MAX_MS:
        raise ValueError(f"{shown(value)} is not a time in the years 1 to 9999")
    return (EPOCH + millis * _ONE_MS).astimezone(where)


def _to_date_time(value: object, pattern: DatePattern, where: tzinfo = UTC) -> str:
    return pattern.format(moment(value, where))


def _from_date_time(value: object, pattern: DatePattern, where: tzinfo = UTC, *default: object) -> object:
    try:
        return millis_of(pattern.parse(text(value), where))
    except (ValueError, OverflowError):
        if default:
            return whole(default[0])
        raise ValueError(f"{shown(value)} does not fit the date pattern") from None


def floored(found: datetime, unit: str) -> datetime:
    """The begin of the second, day, week (Monday), quarter and so on that contains an instant, in its zone."""
    if unit == "millisecond":
        return found.replace(microsecond=found.microsecond // 1000 * 1000)
    if unit in {"second", "minute", "hour"}:
        # Computed with the instant's offset, because an hour that a clock repeats is two hours.
        offset = found.utcoffset() or timedelta()
        local = found.replace(tzinfo=UTC)
        return (local - (local - EPOCH) % timedelta(milliseconds=_FIXED_MS[unit]) - offset).astimezone(found.tzinfo)
    day = found.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    if unit == "week":
        start = day - timedelta(days=day.weekday())
    elif unit == "day":
        start = day
    else:
        start = day.replace(month=(day.month - 1) // _MONTHS[unit] * _MONTHS[unit] + 1, day=1)
    later = start.replace(fold=1)
    # Where midnight occurs twice, it is the one with the offset of the instant.
    is_twice = (later.utcoffset() or timedelta()) < (start.utcoffset() or timedelta())
    return later if is_twice and later.utcoffset() == found.utcoffset() else start


def _date_trunc(unit: str, value: object, given: int = _MS, where: tzinfo = UTC, wanted: int | None = None) -> int:
    millis = _quotient(whole(value) * given, _MS)
    return _quotient(millis_of(floored(moment(millis, where), unit)) * _MS, wanted or given)


def _time_convert(value: object, given: int, wanted: int) -> int:
    return _quotient(whole(value) * given, wanted)


def _quotient(value: int, by: int) -> int:
    """A quotient of whole numbers, truncated towards zero."""
    return value // by if value >= 0 else -(-value // by)


def _date_time_convert(
    value: object, given: TimeFormat, wanted: TimeFormat, grain: tuple[int, str], where: tzinfo | None = None
) -> object:
    millis = given.to_millis(whole(value) if isinstance(value, (float, JsonFloat)) else value)
    size, unit = grain
    if where is None and not wanted.pattern:
        grain_ns = size * UNITS_NS[unit]
        return wanted.from_millis(_quotient(millis * _MS, grain_ns) * grain_ns // _MS)
    local = moment(millis, where or (zone(wanted.zone) if wanted.pattern else UTC))
    return wanted.from_millis(millis_of(_in_steps(local, size, unit)))


def _in_steps(found: datetime, size: int, unit: str) -> datetime:
    """An instant truncated to a multiple of `size` within the next larger unit: minute 37 with size 15 is 30."""
    if unit == "DAYS":
        day = floored(found, "day")
        return day.replace(day=(day.day - 1) // size * size + 1)
    name = {"HOURS": "hour", "MINUTES": "minute", "SECONDS": "second"}.get(unit)
    if name is None:
        steps = found.microsecond // 1000 // size * size if unit == "MILLISECONDS" else found.microsecond // 1000
        return found.replace(microsecond=steps * 1000)
    cut = floored(found, name)
    extra = getattr(cut, name) % size
    return cut if not extra else (cut.astimezone(UTC) - timedelta(**{f"{name}s": extra})).astimezone(found.tzinfo)


def _timestamp_add(unit: str, interval: object, value: object) -> int:
    instant, count = moment(value), whole(interval)
    if unit in _FIXED_MS:
        return whole(value) + count * _FIXED_MS[unit]
    months = instant.year * 12 + instant.month - 1 + count * _MONTHS[unit]
    year, month = months // 12, months % 12 + 1
    days = monthrange(year, month)[1] if MINYEAR <= year <= MAXYEAR else 1  # `replace` refuses other years
    return millis_of(instant.replace(year=year, month=month, day=min(instant.day, days)))


def _timestamp_diff(unit: str, start: object, end: object) -> int:
    """Whole units from `start` to `end`."""
    begin, finish = _micros(start), _micros(end)
    if unit in _FIXED_MS:
        return _quotient(finish - begin, _FIXED_MS[unit] * 1000)
    first, last = moment(start), moment(end)
    months = (last.year - first.year) * 12 + last.month - first.month
    moved = _timestamp_add("month", months, start) * 1000 + begin % 1000
    if months > 0 and moved > finish:
        months -= 1
    if months < 0 and moved < finish:
        months += 1
    return _quotient(months, _MONTHS[unit])


def _micros(value: object) -> int:
    return micros_of(to_timestamp(value)) if isinstance(value, date) else whole(value) * 1000


def _from_iso(value: object) -> int:
    try:
        return millis_of(to_timestamp(text(value)))
    except (ValueError, ArithmeticError) as error:
        raise ValueError(f"{shown(value)} is not a time in ISO 8601") from error


def _to_iso(value: object) -> str:
    instant = moment(value).replace(tzinfo=None)
    return instant.isoformat(timespec="milliseconds" if instant.microsecond else "seconds") + "Z"


def _part(get: Callable[[datetime], int]) -> Rule:
    return Rule(1, 2, lambda value, where=UTC: get(moment(value, where)), {1: zone})


def _epochs() -> dict[str, Rule]:
    """The rules of toEpochSeconds, fromEpochDaysBucket and so on. `Rounded` keeps the unit, `Bucket` counts buckets."""
    rules: dict[str, Rule] = {}
    for name, ms in _UNITS.items():
        rules[f"toEpoch{name}"] = Rule(1, 1, lambda value, ms=ms: _quotient(whole(value), ms))
        rules[f"toEpoch{name}Rounded"] = Rule(
            2, 2, lambda value, to, ms=ms: _quotient(whole(value), ms * to) * to, {1: step}
        )
        rules[f"toEpoch{name}Bucket"] = Rule(2, 2, lambda value, to, ms=ms: _quotient(whole(value), ms * to), {1: step})
        rules[f"fromEpoch{name}"] = Rule(1, 1, lambda value, ms=ms: whole(value) * ms)
        rules[f"fromEpoch{name}Bucket"] = Rule(2, 2, lambda value, to, ms=ms: whole(value) * to * ms, {1: step})
    return rules


_PARTS: dict[str, Callable[[datetime], int]] = {
    "year": lambda instant: instant.year,
    "yearOfWeek": lambda instant: instant.isocalendar().year,
    "yow": lambda instant: instant.isocalendar().year,
    "quarter": lambda instant: (instant.month - 1) // 3 + 1,
    "month": lambda instant: instant.month,
    "monthOfYear": lambda instant: instant.month,
    "week": lambda instant: instant.isocalendar().week,
    "weekOfYear": lambda instant: instant.isocalendar().week,
    "dayOfYear": lambda instant: instant.timetuple().tm_yday,
    "doy": lambda instant: instant.timetuple().tm_yday,
    "day": lambda instant: instant.day,
    "dayOfMonth": lambda instant: instant.day,
    "dayOfWeek": lambda instant: instant.isoweekday(),
    "dow": lambda instant: instant.isoweekday(),
    "hour": lambda instant: instant.hour,
    "minute": lambda instant: instant.minute,
    "second": lambda instant: instant.second,
    "millisecond": lambda instant: instant.microsecond // 1000,
}

RULES: dict[str, Rule] = {
    "now": Rule(0, 0, lambda now_ms: now_ms, clock=True),
    "ago": Rule(1, 1, lambda now_ms, period: now_ms - period, {0: duration}, clock=True),
    **_epochs(),
    "toDateTime": Rule(2, 3, _to_date_time, {1: date_pattern, 2: zone}),
    "fromDateTime": Rule(2, 4, _from_date_time, {1: date_pattern, 2: zone}),
    "toTimestamp": Rule(1, 1, lambda value: moment(value)),
    "fromTimestamp": Rule(1, 1, lambda value: millis_of(to_timestamp(value))),
    "fromIso8601": Rule(1, 1, _from_iso),
    "toIso8601": Rule(1, 1, _to_iso),
    "dateTrunc": Rule(2, 5, _date_trunc, {0: trunc_unit, 2: unit_ns, 3: zone, 4: unit_ns}),
    "timeConvert": Rule(3, 3, _time_convert, {1: unit_ns, 2: unit_ns}),
    "dateTimeConvert": Rule(4, 5, _date_time_convert, {1: time_format, 2: time_format, 3: granularity, 4: zone}),
    "timestampAdd": Rule(3, 3, _timestamp_add, {0: trunc_unit}),
    "dateAdd": Rule(3, 3, _timestamp_add, {0: trunc_unit}),
    "timestampDiff": Rule(3, 3, _timestamp_diff, {0: trunc_unit}),
    "dateDiff": Rule(3, 3, _timestamp_diff, {0: trunc_unit}),
    **{name: _part(get) for name, get in _PARTS.items()},
}
