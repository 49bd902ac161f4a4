"""Cron expressions in UTC, in the syntax of Quartz (6 or 7 fields, `0 0/10 * ? * *`) or of Unix (5 fields).

An expression is rewritten to plain numbers first, because weekdays are numbered from 1 = SUN in Quartz and from
0 = SUN in Unix. croniter, which computes the times, reads the latter only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hybrid.errors import SpecError
from hybrid.schema.document import shown

_LIKE = "Write it like '0 */10 * ? * *' (Quartz: second minute hour day month weekday [year]) or '*/10 * * * *' (Unix)."
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_YEARS = (1970, 2099)
_ITEM = re.compile(r"(?:(?P<all>\*)|(?P<low>\w+)(?:-(?P<high>\w+))?)(?:/(?P<step>\w+))?", re.ASCII)
_LENGTH_MAX = 200


@dataclass(frozen=True)
class _Field:
    """A field of an expression: its name in messages, lowest and highest value, and words for values.

    `goes_round`: the lowest value follows the highest, so that a range may end below its start.
    """

    name: str
    low: int
    high: int
    words: Mapping[str, int] = field(default_factory=dict)
    goes_round: bool = True

    def value(self, text: str) -> int:
        """The number in a text, or the value of its word."""
        if text in self.words:
            return self.words[text]
        if not text.isdigit() or len(text) > 4 or not self.low <= int(text) <= self.high:
            raise _Wrong(f"{text!r} cannot be a {self.name}: it goes from {self.low} to {self.high}")
        return int(text)

    def expand(self, item: str) -> list[int]:
        """All values of `*`, `5`, `5-9`, `5/2`, `5-9/2` and `*/2`; a range may wrap around (`FRI-MON`)."""
        parts = _ITEM.fullmatch(item)
        if parts is None:
            raise _Wrong(f"{item!r} cannot be a {self.name}")
        low = self.low if parts["all"] else self.value(parts["low"])
        high = self.high if parts["high"] is None else self.value(parts["high"])
        if low > high and not self.goes_round:
            raise _Wrong(f"{item!r} runs backwards")
        if parts["low"] and not parts["high"] and not parts["step"]:
            return [low]
        step = self._step(parts["step"])
        size = self.high - self.low + 1
        span = high - low if low <= high else high - low + size
        return [self.low + (low - self.low + at) % size for at in range(0, span + 1, step)]

    def _step(self, text: str | None) -> int:
        if text is None:
            return 1
        if not text.isdigit() or len(text) > 4 or not 1 <= int(text) <= self.high:
            raise _Wrong(f"{text!r} cannot be a step in the {self.name}: it goes from 1 to {self.high}")
        return int(text)


_SECOND, _MINUTE, _HOUR = _Field("second", 0, 59), _Field("minute", 0, 59), _Field("hour", 0, 23)
_DAY, _YEAR = _Field("day of the month", 1, 31), _Field("year", *_YEARS, goes_round=False)
_MONTH = _Field("month", 1, 12, {word: number for number, word in enumerate(_MONTHS, 1)})
_QUARTZ_WEEKDAY = _Field("weekday", 1, 7, {word: number for number, word in enumerate(_WEEKDAYS, 1)})
_UNIX_WEEKDAY = _Field("weekday", 0, 7, {word: number for number, word in enumerate(_WEEKDAYS)})


class _Wrong(Exception):
    """Why a text is no cron expression, as the middle of a sentence."""


@dataclass(frozen=True)
class Cron:
    """A cron expression; `text` is its original form."""

    text: str
    _plain: str = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: object, source: str, path: str) -> Cron:
        """Parse `text`. SpecError at `source`, `path` when it is no cron expression, or never matches a time."""
        if not isinstance(text, str) or not text.strip() or len(text) > _LENGTH_MAX:
            raise SpecError.at(source, path, f"{shown(text)} is not a cron expression. {_LIKE}")
        try:
            cron = cls(text.strip(), _rewrite(text.upper().split()))
        except _Wrong as error:
            raise SpecError.at(source, path, f"{text!r} is not a cron expression: {error}. {_LIKE}") from error
        if not cron._surely_comes and cron.next_after(-1) is None:
            raise SpecError.at(source, path, f"{text!r} never comes: there is no such day.")
        return cron

    @property
    def _surely_comes(self) -> bool:
        """Whether it matches some time by its form: only days of the month and years can make it never match."""
        _, _, _, day, *rest = self._plain.split()
        return day in ("*", "?") and len(rest) == 2

    def next_after(self, ms: int) -> int | None:
        """The first time after `ms`, both in epoch milliseconds; None when no time matches after it."""
        # Imported here to keep the start of queries short: they parse schedules, and compute no times.
        from croniter import CroniterBadDateError, croniter

        # croniter's default limit, 50 years without a match, would miss times: a list of years may have wide gaps.
        times = croniter(
            self._plain,
            float(ms // 1000),
            second_at_beginning=True,
            max_years_between_matches=_YEARS[1] - _YEARS[0] + 1,
        )
        try:
            return int(times.get_next(float)) * 1000
        except CroniterBadDateError:
            return None


def _rewrite(fields: list[str]) -> str:
    """The expression as croniter reads it: with seconds, in numbers, weekdays from 0 = SUN."""
    if len(fields) not in (5, 6, 7):
        raise _Wrong(f"it has {len(fields)} field{'' if len(fields) == 1 else 's'}, not 5, 6 or 7")
    quartz = len(fields) > 5
    second, minute, hour, day, month, weekday, *year = fields if quartz else ["0", *fields]
    if quartz:
        _check_days(day, weekday)
    plain = [_numbers(second, _SECOND), _numbers(minute, _MINUTE), _numbers(hour, _HOUR), _days(day)]
    plain += [_numbers(month, _MONTH), _weekdays(weekday, quartz), *(_numbers(text, _YEAR) for text in year)]
    return " ".join(plain)


def _check_days(day: str, weekday: str) -> None:
    """Refuse days of the month beside weekdays, which Quartz cannot combine. Unix accepts either of them."""
    if day == weekday == "?":
        raise _Wrong("'?' can stand for the day of the month or for the weekday, not for both")
    if {"*", "?"}.isdisjoint({day, weekday}):
        raise _Wrong("with both a day of the month and a weekday, one of them has to be '?'")


def _numbers(text: str, place: _Field) -> str:
    if text == "*":
        return text
    return _listed({value for item in text.split(",") for value in place.expand(item)})


def _days(text: str) -> str:
    """The day-of-month field: plain days, `L` (the last one), `15W` (the nearest weekday)."""
    if text in ("*", "?", "L"):
        return text
    if text == "LW" or text.startswith("L-"):
        raise _Wrong(f"{text!r} is not built; 'L' and '15W' are")
    if text.endswith("W"):
        return f"{_DAY.value(text[:-1])}W"
    return _numbers(text, _DAY)


def _weekdays(text: str, quartz: bool) -> str:
    """The weekday field: plain weekdays, `6L` (the last one of the month), `6#3` (the third one)."""
    if text in ("*", "?"):
        return text
    place, first = (_QUARTZ_WEEKDAY, 1) if quartz else (_UNIX_WEEKDAY, 0)
    if text == "L" and quartz:
        return "6"
    items = text.split(",")
    special = list(_special_weekdays(items, place, first))
    if special and len(special) < len(items):
        raise _Wrong(f"{text!r} mixes weekdays with some of a month's")
    if special:
        return ",".join(special)
    return _listed({(value - first) % 7 for item in items for value in place.expand(item)})


def _special_weekdays(items: list[str], place: _Field, first: int) -> Iterator[str]:
    for item in items:
        day, mark, nth = item.partition("#")
        if mark:
            if nth not in ("1", "2", "3", "4", "5"):
                raise _Wrong(f"{item!r}: a month has a weekday 1 to 5 times")
            yield f"{(place.value(day) - first) % 7}#{nth}"
        elif len(item) > 1 and item.endswith("L"):
            yield f"L{(place.value(item[:-1]) - first) % 7}"


def _listed(values: set[int]) -> str:
    return ",".join(str(value) for value in sorted(values))
