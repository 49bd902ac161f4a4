"""Local times of a zone in DuckDB's SQL, by the rules of Joda and java.time for gaps and overlaps of the clock.

An instant is a TIMESTAMP in UTC, a local time a TIMESTAMP without a zone. DuckDB itself converts an ambiguous local
time to the later of two instants.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from hybrid.sql.calls import call, text
from hybrid.sql.wholes import once

Start = Callable[[exp.Expr], exp.Expr]
# Units below a day are counted in the offset of the instant.
CLOCK_UNITS = ("millisecond", "second", "minute", "hour")
_LONGEST_OVERLAP = exp.Interval(this=exp.Literal.string("1"), unit=exp.Var(this="DAY"))


def is_utc(zone: str) -> bool:
    """Whether a zone's local times are UTC."""
    return zone.upper() in {"UTC", "GMT", "Z"}


def to_local(moment: exp.Expr, zone: str) -> exp.Expr:
    """The local time of the zone at an instant."""
    return moment if is_utc(zone) else call("timezone", text(zone), call("timezone", text("UTC"), moment))


def to_instant(local: exp.Expr, zone: str, *, rows: bool = False) -> exp.Expr:
    """The instant of a local time: the earlier of two; a local time in a gap is moved forward like the clock.

    Spark (`rows`) converts by these rules itself.
    """
    if is_utc(zone):
        return local
    if rows:
        return _later(local, zone)
    return once(local, lambda wall: once(_later(wall, zone), lambda later: _earlier(wall, later, zone)))


def truncate_local(unit: str, moment: exp.Expr, zone: str) -> exp.Expr:
    """The start, as an instant, of the unit of local time that contains an instant."""
    if is_utc(zone):
        return call("date_trunc", text(unit), moment)
    keep = unit in CLOCK_UNITS
    start: Start = lambda local: call("date_trunc", text(unit), local)  # noqa: E731
    return once(moment, lambda instant: _started(start, instant, zone, keep=keep))


def start_local(start: Start, moment: exp.Expr, zone: str) -> exp.Expr:
    """The instant of the local time that `start` computes from an instant's local time."""
    if is_utc(zone):
        return once(moment, start)
    return once(moment, lambda instant: _started(start, instant, zone, keep=False))


def _later(local: exp.Expr, zone: str) -> exp.Expr:
    return call("timezone", text("UTC"), call("timezone", text(zone), local))


def _earlier(wall: exp.Expr, later: exp.Expr, zone: str) -> exp.Expr:
    """The instant of a local time by the offset of the day before, if the clock showed that time then; else `later`."""
    before = exp.Paren(this=exp.Sub(this=later.copy(), expression=_LONGEST_OVERLAP.copy()))
    candidate = _less_offset(wall.copy(), to_local(before, zone), before.copy())
    shown = exp.EQ(this=to_local(candidate, zone), expression=wall.copy())
    return exp.Case(ifs=[exp.If(this=shown, true=call("least", candidate.copy(), later.copy()))], default=later.copy())


def _started(start: Start, instant: exp.Expr, zone: str, *, keep: bool) -> exp.Expr:
    """The instant of the start of an instant's local unit.

    `keep`: always by the offset of the instant, even if the clock does not show that time there.
    """
    local = to_local(instant.copy(), zone)
    begun = start(local)
    same_offset = _less_offset(begun, local.copy(), instant.copy())
    if keep:
        return same_offset
    shown = exp.EQ(this=to_local(same_offset.copy(), zone), expression=begun.copy())
    return exp.Case(ifs=[exp.If(this=shown, true=same_offset)], default=_later(begun.copy(), zone))


def _less_offset(local: exp.Expr, shown: exp.Expr, instant: exp.Expr) -> exp.Expr:
    """A local time minus the zone's offset at `instant`, whose local time is `shown`."""
    offset = exp.Paren(this=exp.Sub(this=shown, expression=instant))
    return exp.Paren(this=exp.Sub(this=local, expression=offset))
