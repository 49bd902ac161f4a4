"""Pinot's date and time functions in DuckDB's SQL. Pinot's times are epoch milliseconds unless a unit is given.

Each rule takes the call's arguments and the statement's context, and returns the replacement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from hybrid.errors import VALIDATION, QueryError
from hybrid.schema.period import duration_ms
from hybrid.sql.calls import ColumnTypes, call, cast, number, text, to_millis
from hybrid.sql.constants import constant_number, constant_text, described
from hybrid.sql.infer import is_time
from hybrid.sql.patterns import format_time, parse_time, split_zone
from hybrid.sql.wholes import as_instant, as_milliseconds, as_whole, cut_millis
from hybrid.sql.zones import is_utc, start_local, to_instant, to_local, truncate_local

Arguments = Sequence[exp.Expr]


@dataclass(frozen=True)
class TimeContext:
    """The context of a statement. `now_ms` is its clock, so that all its now() and ago() agree.

    `types` are the tables' column types. `lists` are their multi-value columns, in lower case, which `types` omits.
    `rows`: a row expression, which is written for Spark.
    """

    now_ms: int
    types: ColumnTypes
    lists: frozenset[str] = frozenset()
    rows: bool = False

    def whole(self, node: exp.Expr) -> exp.Expr:
        """The expression as a BIGINT, without its fraction."""
        return as_whole(node, self.types, rows=self.rows)

    def instant(self, node: exp.Expr) -> exp.Expr:
        """The expression as a timestamp; a number is epoch milliseconds."""
        return as_instant(node, self.types, rows=self.rows)

    def millis(self, node: exp.Expr) -> exp.Expr:
        """The expression as epoch milliseconds."""
        return as_milliseconds(node, self.types, rows=self.rows)


TimeRule = Callable[[Arguments, TimeContext], exp.Expr]

_UNIT_MS = {"SECONDS": 1000, "MINUTES": 60_000, "HOURS": 3_600_000, "DAYS": 86_400_000, "MILLISECONDS": 1}
_EPOCHS = ("SECONDS", "MINUTES", "HOURS", "DAYS")
_TRUNC_UNITS = ("millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year")


def period_ms(period: str) -> int:
    """An ISO 8601 period such as `P1D` or `PT2H30M`, in milliseconds."""
    try:
        return duration_ms(period)
    except ValueError as error:
        raise _wrong(str(error)) from error


def _ago(arguments: Arguments, context: TimeContext) -> exp.Expr:
    return number(context.now_ms - period_ms(_constant(arguments[0], "ago")))


def _now(arguments: Arguments, context: TimeContext) -> exp.Expr:
    return number(context.now_ms)


def _date_trunc(arguments: Arguments, context: TimeContext) -> exp.Expr:
    """DATETRUNC(unit, time [, input unit [, zone [, output unit]]]); a DATE or TIMESTAMP stays one."""
    unit = _date_unit(arguments[0], "DATETRUNC")
    units = [_constant(argument, "DATETRUNC") for argument in arguments[2:]]
    if not units and is_time(arguments[1], context.types) and not isinstance(arguments[1], exp.Column):
        return call("date_trunc", text(unit), arguments[1])
    input_unit = units[0] if units else "MILLISECONDS"
    output_unit = units[2] if len(units) > 2 else input_unit
    if is_time(arguments[1], context.types) and _unit_ms(input_unit) == 1:
        moment = arguments[1]
    else:
        moment = call("make_timestamp_ms", _scaled(context.whole(arguments[1]), _unit_ms(input_unit), 1))
    zone = _constant(arguments[3], "DATETRUNC") if len(units) > 1 else "UTC"
    return _scaled(to_millis(_truncated(unit, moment, zone, context)), 1, _unit_ms(output_unit))


def _truncated(unit: str, moment: exp.Expr, zone: str, context: TimeContext) -> exp.Expr:
    if context.rows and not is_utc(zone):
        return call("truncate_local", text(unit), moment, text(zone))  # `sql.spark_calls` writes it
    return truncate_local(unit, moment, zone)


def _to_date_time(arguments: Arguments, context: TimeContext) -> exp.Expr:
    zone = _constant(arguments[2], "TODATETIME") if len(arguments) > 2 else "UTC"
    return format_time(context.instant(arguments[0]), _constant(arguments[1], "TODATETIME"), zone)


def _from_date_time(arguments: Arguments, context: TimeContext) -> exp.Expr:
    zone = _constant(arguments[2], "FROMDATETIME") if len(arguments) > 2 else "UTC"
    return _parsed(arguments[0], _constant(arguments[1], "FROMDATETIME"), zone, context)


def _parsed(written: exp.Expr, pattern: str, zone: str, context: TimeContext) -> exp.Expr:
    """The epoch milliseconds of a text. `zone` does not apply to a pattern with an offset."""
    moment, has_offset = parse_time(cast(written, "VARCHAR"), pattern)
    instant = moment if has_offset else to_instant(moment, zone, rows=context.rows)
    return to_millis(call("date_trunc", text("millisecond"), instant))


def _time_convert(arguments: Arguments, context: TimeContext) -> exp.Expr:
    """TIMECONVERT(time, from unit, to unit)."""
    units = [_constant(argument, "TIMECONVERT") for argument in arguments[1:]]
    return _scaled(context.millis(arguments[0]), _unit_ms(units[0]), _unit_ms(units[1]))


def _date_time_convert(arguments: Arguments, context: TimeContext) -> exp.Expr:
    """DATETIMECONVERT(time, input format, output format, granularity [, zone of the buckets])."""
    source, target = (_format(argument) for argument in arguments[1:3])
    count, unit = _granularity(_constant(arguments[3], "DATETIMECONVERT"))
    if source.pattern:
        millis = _parsed(arguments[0], source.pattern, source.zone, context)
    else:
        millis = _scaled(context.millis(arguments[0]), source.step_ms, 1)
    if target.pattern:
        return _bucket_text(call("make_timestamp_ms", millis), count, unit, target, context)
    step = number(count * _unit_ms(unit))
    steps = exp.IntDiv(this=exp.Paren(this=millis), expression=step)
    rounded = exp.Paren(this=exp.Mul(this=exp.Paren(this=steps), expression=step.copy()))
    if target.is_instant:
        return call("make_timestamp_ms", rounded)
    return _scaled(rounded, 1, target.step_ms)


def _bucket_text(moment: exp.Expr, count: int, unit: str, target: TimeForm, context: TimeContext) -> exp.Expr:
    """The text of a bucket of local time: buckets of `count` units within the next larger unit, as in Pinot."""
    part = unit.lower().removesuffix("s")
    if count == 1:
        return format_time(_truncated(part, moment, target.zone, context), target.pattern, target.zone)
    start = start_local(lambda local: _step_start(local, count, part), moment, target.zone)
    return format_time(start, target.pattern, target.zone)


def _step_start(local: exp.Expr, count: int, part: str) -> exp.Expr:
    """The start of the bucket of `count` parts that contains a local time."""
    within: exp.Expr = call(part, local.copy())
    if part == "millisecond":  # DuckDB counts milliseconds within the minute
        within = exp.Mod(this=within, expression=number(1000))
    over: exp.Expr = exp.Mod(this=exp.Paren(this=within), expression=number(count))
    if part == "day":  # days before the first bucket of a month belong to its first day
        over = call("least", over, exp.Sub(this=within.copy(), expression=number(1)))
    back = call(f"to_{part}s", cast(exp.Paren(this=over), "INTEGER"))
    return exp.Paren(this=exp.Sub(this=call("date_trunc", text(part), local.copy()), expression=back))


@dataclass(frozen=True)
class TimeForm:
    """A format of DATETIMECONVERT: a date pattern in a zone, an instant, or steps of `step_ms`."""

    step_ms: int = 1
    pattern: str = ""
    zone: str = "UTC"
    is_instant: bool = False


def _format(node: exp.Expr) -> TimeForm:
    """A format in either of Pinot's spellings, `1:DAYS:EPOCH` and `EPOCH|DAYS|1`."""
    written = _constant(node, "DATETIMECONVERT")
    if "|" in written.split(":")[0] or ":" not in written:
        kind, *rest = (part.strip() for part in written.split("|", 2))
        unit, size, pattern = *[*rest, "MILLISECONDS", "1"][:2], "|".join(rest)
        if len(rest) == 1:
            size = "1"
        if not rest:
            unit, size = "MILLISECONDS", "1"
        pattern, _, zone = pattern.partition("|")
    else:
        size, unit, kind, *rest = [*written.split(":", 3), "", ""][:4]
        pattern, zone = split_zone(rest[0])
    if kind.upper() == "SIMPLE_DATE_FORMAT" and pattern:
        return TimeForm(pattern=pattern, zone=zone or "UTC")
    if kind.upper() == "TIMESTAMP":
        return TimeForm(is_instant=True)
    if kind.upper() != "EPOCH" or not size.isdigit() or int(size) == 0:
        hint = "write it like '1:MILLISECONDS:EPOCH', 'EPOCH|SECONDS', 'SIMPLE_DATE_FORMAT|yyyy-MM-dd' or 'TIMESTAMP'"
        raise _wrong(f"DATETIMECONVERT: '{written}' is not a time format; {hint}")
    return TimeForm(int(size) * _unit_ms(unit))


def _granularity(granularity: str) -> tuple[int, str]:
    """`15:MINUTES` as 15 and MINUTES."""
    count, _, unit = granularity.partition(":")
    if not unit:  # the newer spelling
        unit, _, count = granularity.partition("|")
        count = count or "1"
    if not count.isdigit() or int(count) == 0:
        raise _wrong(f"DATETIMECONVERT: '{granularity}' is not a granularity; write it like '1:HOURS'")
    _unit_ms(unit)
    return int(count), unit.upper()


def _part(name: str) -> TimeRule:
    """YEAR(time [, zone]) and the like."""

    def rule(arguments: Arguments, context: TimeContext) -> exp.Expr:
        zone = _constant(arguments[1], name) if len(arguments) > 1 else "UTC"
        return _int(call(name, to_local(context.instant(arguments[0]), zone)))

    return rule


def _millisecond(arguments: Arguments, context: TimeContext) -> exp.Expr:
    """MILLISECOND(time) within its second; DuckDB counts within the minute."""
    within = exp.Mod(this=call("millisecond", context.instant(arguments[0])), expression=number(1000))
    return _int(within)


def _int(value: exp.Expr) -> exp.Expr:
    return cast(value, "INTEGER")


def _to_epoch(unit: str) -> TimeRule:
    return lambda arguments, context: _scaled(context.millis(arguments[0]), 1, _UNIT_MS[unit])


def _to_bucket(unit: str, *, rounded: bool) -> TimeRule:
    """TOEPOCHMINUTESBUCKET(time, 15), the number of 15-minute steps; ROUNDED returns the step's first minute."""

    def rule(arguments: Arguments, context: TimeContext) -> exp.Expr:
        size = _size(arguments[1])
        steps = _scaled(context.millis(arguments[0]), 1, size * _UNIT_MS[unit])
        return _scaled(steps, size, 1) if rounded else steps

    return rule


def _from_epoch(unit: str) -> TimeRule:
    return lambda arguments, context: _scaled(context.whole(arguments[0]), _UNIT_MS[unit], 1)


def _from_bucket(unit: str) -> TimeRule:
    return lambda arguments, context: _scaled(context.whole(arguments[0]), _size(arguments[1]) * _UNIT_MS[unit], 1)


def _size(node: exp.Expr) -> int:
    size = constant_number(node)
    if size is None or size < 1 or size != int(size):
        raise _wrong(f"{described(node)} must be a whole number of steps, from 1 on")
    return int(size)


def _round(arguments: Arguments, context: TimeContext) -> exp.Expr:
    """ROUND(value, step), the multiple of `step` towards zero, as Pinot's users round times."""
    value, step = (context.whole(argument) for argument in arguments)
    steps = exp.Paren(this=exp.IntDiv(this=value, expression=step))
    return exp.Paren(this=exp.Mul(this=steps, expression=step.copy()))


def _date_add(arguments: Arguments, context: TimeContext) -> exp.Expr:
    """DATEADD(unit, count, time) in epoch milliseconds."""
    unit = _date_unit(arguments[0], "DATEADD")
    interval = call(f"to_{unit}s", cast(context.whole(arguments[1]), "INTEGER"))
    moved = exp.Add(this=context.instant(arguments[2]), expression=interval)
    return cut_millis(moved, rows=context.rows)


def _date_diff(arguments: Arguments, context: TimeContext) -> exp.Expr:
    """DATEDIFF(unit, from, to): whole units between two times."""
    moments = (context.instant(argument) for argument in arguments[1:])
    return call("date_sub", text(_date_unit(arguments[0], "DATEDIFF")), *moments)


def _date_unit(node: exp.Expr, name: str) -> str:
    unit = _constant(node, name).lower()
    if unit not in _TRUNC_UNITS:
        raise _wrong(f"{name}: '{unit}' is not a unit; known are {', '.join(_TRUNC_UNITS)}")
    return unit


def _to_timestamp(arguments: Arguments, context: TimeContext) -> exp.Expr:
    return context.instant(arguments[0])


def _scaled(value: exp.Expr, times: int, over: int) -> exp.Expr:
    """`value * times // over`, without arithmetic where it would change nothing."""
    if times == over:
        return value
    if not isinstance(value, exp.Cast):
        value = cast(value, "BIGINT")  # INT times milliseconds does not fit INT
    if times % over == 0:
        return exp.Paren(this=exp.Mul(this=exp.Paren(this=value), expression=number(times // over)))
    product = value if times == 1 else exp.Paren(this=exp.Mul(this=exp.Paren(this=value), expression=number(times)))
    return exp.Paren(this=exp.IntDiv(this=exp.Paren(this=product), expression=number(over)))


def _unit_ms(unit: str) -> int:
    if unit.upper() not in _UNIT_MS:
        raise _wrong(f"'{unit}' is not a time unit; known are {', '.join(_UNIT_MS)}")
    return _UNIT_MS[unit.upper()]


def _constant(node: exp.Expr, name: str) -> str:
    constant = constant_text(node)
    if constant is None:
        raise _wrong(f"{name}: {described(node)} must be a quoted constant")
    return constant


def _wrong(message: str) -> QueryError:
    return QueryError(f"{message}.", pinot_code=VALIDATION)


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
    "fromtimestamp": (1, 1, lambda arguments, context: context.millis(arguments[0])),
    "round": (2, 2, _round),
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
