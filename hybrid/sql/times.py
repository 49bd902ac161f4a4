"""Pinot's date and time functions in DuckDB's words. Pinot's times are epoch milliseconds unless a unit says otherwise.

Every rule takes the call's arguments and what is known of the statement, and gives its replacement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from hybrid.errors import QueryError
from hybrid.spec.period import duration_ms
from hybrid.sql.calls import (
    ColumnTypes,
    as_millis,
    as_timestamp,
    call,
    cast,
    is_temporal,
    literal_number,
    literal_text,
    number,
    text,
    to_millis,
)
from hybrid.sql.patterns import split_zone, strftime_pattern

Arguments = Sequence[exp.Expr]


@dataclass(frozen=True)
class Context:
    """`now_ms` is the statement's clock: every now() and ago() in it agree. `types` are the tables' column types.

    `lists` are their multi-value columns, in lower case; those are not in `types`.
    """

    now_ms: int
    types: ColumnTypes
    lists: frozenset[str] = frozenset()


TimeRule = Callable[[Arguments, Context], exp.Expr]

_UNIT_MS = {"SECONDS": 1000, "MINUTES": 60_000, "HOURS": 3_600_000, "DAYS": 86_400_000, "MILLISECONDS": 1}
_EPOCHS = ("SECONDS", "MINUTES", "HOURS", "DAYS")
_TRUNC_UNITS = ("millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year")


def period_ms(period: str) -> int:
    """An ISO 8601 period such as `P1D` or `PT2H30M`, in milliseconds."""
    try:
        return duration_ms(period)
    except ValueError as error:
        raise _wrong(str(error)) from error


def _ago(arguments: Arguments, context: Context) -> exp.Expr:
    return number(context.now_ms - period_ms(_constant(arguments[0], "ago")))


def _now(arguments: Arguments, context: Context) -> exp.Expr:
    return number(context.now_ms)


def _date_trunc(arguments: Arguments, context: Context) -> exp.Expr:
    """DATETRUNC(unit, time [, input unit [, zone [, output unit]]]); a DATE or TIMESTAMP stays one."""
    unit = _date_unit(arguments[0], "DATETRUNC")
    units = [_constant(argument, "DATETRUNC") for argument in arguments[2:]]
    if not units and is_temporal(arguments[1], context.types) and not isinstance(arguments[1], exp.Column):
        return call("date_trunc", text(unit), arguments[1])
    input_unit = units[0] if units else "MILLISECONDS"
    output_unit = units[2] if len(units) > 2 else input_unit
    moment = as_timestamp(_scaled(arguments[1], _unit_ms(input_unit), 1), context.types)
    truncated = call("date_trunc", text(unit), _shift(moment, units[1] if len(units) > 1 else "UTC", back=False))
    shifted = _shift(truncated, units[1] if len(units) > 1 else "UTC", back=True)
    return _scaled(to_millis(shifted), 1, _unit_ms(output_unit))


def _to_date_time(arguments: Arguments, context: Context) -> exp.Expr:
    zone = _constant(arguments[2], "TODATETIME") if len(arguments) > 2 else "UTC"
    pattern = strftime_pattern(_constant(arguments[1], "TODATETIME"), utc=_is_utc(zone))
    return call("strftime", _shift(as_timestamp(arguments[0], context.types), zone, back=False), text(pattern))


def _from_date_time(arguments: Arguments, context: Context) -> exp.Expr:
    pattern = strftime_pattern(_constant(arguments[1], "FROMDATETIME"))
    zone = _constant(arguments[2], "FROMDATETIME") if len(arguments) > 2 else "UTC"
    moment = call("strptime", cast(arguments[0], "VARCHAR"), text(pattern))
    # A text with an offset says itself which instant it means.
    return to_millis(moment if "%z" in pattern else _shift(moment, zone, back=True))


def _time_convert(arguments: Arguments, context: Context) -> exp.Expr:
    """TIMECONVERT(time, from unit, to unit)."""
    units = [_constant(argument, "TIMECONVERT") for argument in arguments[1:]]
    return _scaled(as_millis(arguments[0], context.types), _unit_ms(units[0]), _unit_ms(units[1]))


def _date_time_convert(arguments: Arguments, context: Context) -> exp.Expr:
    """DATETIMECONVERT(time, input format, output format, granularity): epochs and simple date formats."""
    source, target, granularity = (_constant(argument, "DATETIMECONVERT") for argument in arguments[1:4])
    count, unit = _granularity(granularity)
    parts = source.split(":", 3)
    if parts[2:3] == ["EPOCH"]:
        millis = _scaled(as_millis(arguments[0], context.types), int(parts[0]) * _unit_ms(parts[1]), 1)
    elif parts[2:3] == ["SIMPLE_DATE_FORMAT"] and len(parts) == 4:
        millis = _from_date_time([arguments[0], *(text(part) for part in split_zone(parts[3]))], context)
    else:
        raise _wrong(f"DATETIMECONVERT: the format '{source}' is not supported")
    step = number(count * unit)
    steps = exp.IntDiv(this=exp.Paren(this=millis), expression=step)
    rounded = exp.Paren(this=exp.Mul(this=steps, expression=step.copy()))
    parts = target.split(":", 3)
    if parts[2:3] == ["EPOCH"]:
        return _scaled(rounded, 1, int(parts[0]) * _unit_ms(parts[1]))
    if parts[2:3] == ["SIMPLE_DATE_FORMAT"] and len(parts) == 4:
        return _to_date_time([rounded, *(text(part) for part in split_zone(parts[3]))], context)
    raise _wrong(f"DATETIMECONVERT: the format '{target}' is not supported")


def _granularity(granularity: str) -> tuple[int, int]:
    count, _, unit = granularity.partition(":")
    if not count.isdigit() or int(count) == 0:
        raise _wrong(f"DATETIMECONVERT: '{granularity}' is not a granularity; write it like '1:HOURS'")
    return int(count), _unit_ms(unit)


def _part(name: str) -> TimeRule:
    """YEAR(time [, zone]) and the like."""

    def rule(arguments: Arguments, context: Context) -> exp.Expr:
        zone = _constant(arguments[1], name) if len(arguments) > 1 else "UTC"
        return _int(call(name, _shift(as_timestamp(arguments[0], context.types), zone, back=False)))

    return rule


def _millisecond(arguments: Arguments, context: Context) -> exp.Expr:
    """MILLISECOND(time) within its second; DuckDB counts within the minute."""
    within = exp.Mod(this=call("millisecond", as_timestamp(arguments[0], context.types)), expression=number(1000))
    return _int(within)


def _int(value: exp.Expr) -> exp.Expr:
    return cast(value, "INTEGER")


def _to_epoch(unit: str) -> TimeRule:
    return lambda arguments, context: _scaled(as_millis(arguments[0], context.types), 1, _UNIT_MS[unit])


def _to_bucket(unit: str, *, rounded: bool) -> TimeRule:
    """TOEPOCHMINUTESBUCKET(time, 15) counts steps of 15 minutes; ROUNDED gives the step's minute."""

    def rule(arguments: Arguments, context: Context) -> exp.Expr:
        size = _size(arguments[1])
        steps = _scaled(as_millis(arguments[0], context.types), 1, size * _UNIT_MS[unit])
        return _scaled(steps, size, 1) if rounded else steps

    return rule


def _from_epoch(unit: str) -> TimeRule:
    return lambda arguments, context: _scaled(cast(arguments[0], "BIGINT"), _UNIT_MS[unit], 1)


def _from_bucket(unit: str) -> TimeRule:
    return lambda arguments, context: _scaled(cast(arguments[0], "BIGINT"), _size(arguments[1]) * _UNIT_MS[unit], 1)


def _size(node: exp.Expr) -> int:
    size = literal_number(node)
    if size is None or size < 1 or size != int(size):
        raise _wrong(f"'{node.sql('duckdb')}' must be a whole number of steps")
    return int(size)


def _date_add(arguments: Arguments, context: Context) -> exp.Expr:
    """DATEADD(unit, count, time) in epoch milliseconds."""
    unit = _date_unit(arguments[0], "DATEADD")
    interval = call(f"to_{unit}s", cast(arguments[1], "INTEGER"))
    moved = exp.Add(this=as_timestamp(arguments[2], context.types), expression=interval)
    return to_millis(moved)


def _date_diff(arguments: Arguments, context: Context) -> exp.Expr:
    """DATEDIFF(unit, from, to): whole units between two times."""
    moments = (as_timestamp(argument, context.types) for argument in arguments[1:])
    return call("date_sub", text(_date_unit(arguments[0], "DATEDIFF")), *moments)


def _date_unit(node: exp.Expr, name: str) -> str:
    unit = _constant(node, name).lower()
    if unit not in _TRUNC_UNITS:
        raise _wrong(f"{name}: '{unit}' is not a unit; known are {', '.join(_TRUNC_UNITS)}")
    return unit


def _to_timestamp(arguments: Arguments, context: Context) -> exp.Expr:
    return as_timestamp(arguments[0], context.types)


def _scaled(value: exp.Expr, times: int, over: int) -> exp.Expr:
    """`value * times // over`, and no arithmetic where there is nothing to do."""
    if times == over:
        return value
    if not (isinstance(value, exp.Cast) or is_temporal(value, {})):
        value = cast(value, "BIGINT")  # INT times milliseconds does not fit INT
    if times % over == 0:
        return exp.Paren(this=exp.Mul(this=exp.Paren(this=value), expression=number(times // over)))
    product = value if times == 1 else exp.Paren(this=exp.Mul(this=exp.Paren(this=value), expression=number(times)))
    return exp.Paren(this=exp.IntDiv(this=exp.Paren(this=product), expression=number(over)))


def _shift(moment: exp.Expr, zone: str, *, back: bool) -> exp.Expr:
    """A UTC timestamp as the clock of `zone` shows it, or back."""
    if _is_utc(zone):
        return moment
    first, second = (zone, "UTC") if back else ("UTC", zone)
    return call("timezone", text(second), call("timezone", text(first), moment))


def _is_utc(zone: str) -> bool:
    return zone.upper() in {"UTC", "GMT", "Z"}


def _unit_ms(unit: str) -> int:
    if unit.upper() not in _UNIT_MS:
        raise _wrong(f"'{unit}' is not a time unit; known are {', '.join(_UNIT_MS)}")
    return _UNIT_MS[unit.upper()]


def _constant(node: exp.Expr, name: str) -> str:
    found = literal_text(node)
    if found is None:
        raise _wrong(f"{name}: '{node.sql('duckdb')}' must be a quoted constant")
    return found


def _wrong(message: str) -> QueryError:
    return QueryError(f"{message}.", pinot_code=700)


_PARTS = {
    "year": "year", "yearofweek": "isoyear", "yow": "isoyear", "quarter": "quarter", "month": "month",
    "monthofyear": "month", "week": "week", "weekofyear": "week", "day": "day", "dayofmonth": "day",
    "dayofweek": "isodow", "dow": "isodow", "dayofyear": "dayofyear", "doy": "dayofyear", "hour": "hour",
    "minute": "minute", "second": "second",
}  # fmt: skip

RULES: dict[str, tuple[int, int, TimeRule]] = {
    "ago": (1, 1, _ago),
    "now": (0, 0, _now),
    "datetrunc": (2, 5, _date_trunc),
    "todatetime": (2, 3, _to_date_time),
    "fromdatetime": (2, 3, _from_date_time),
    "timeconvert": (3, 3, _time_convert),
    "datetimeconvert": (4, 4, _date_time_convert),
    "totimestamp": (1, 1, _to_timestamp),
    "fromtimestamp": (1, 1, lambda arguments, context: as_millis(arguments[0], context.types)),
    **{name: (1, 2, _part(target)) for name, target in _PARTS.items()},
    "millisecond": (1, 1, _millisecond),
    "dateadd": (3, 3, _date_add),
    "timestampadd": (3, 3, _date_add),
    "datediff": (3, 3, _date_diff),
    "timestampdiff": (3, 3, _date_diff),
    **{f"toepoch{unit.lower()}": (1, 1, _to_epoch(unit)) for unit in _EPOCHS},
    **{f"toepoch{unit.lower()}rounded": (2, 2, _to_bucket(unit, rounded=True)) for unit in _EPOCHS},
    **{f"toepoch{unit.lower()}bucket": (2, 2, _to_bucket(unit, rounded=False)) for unit in _EPOCHS},
    **{f"fromepoch{unit.lower()}": (1, 1, _from_epoch(unit)) for unit in _EPOCHS},
    **{f"fromepoch{unit.lower()}bucket": (2, 2, _from_bucket(unit)) for unit in _EPOCHS},
}
