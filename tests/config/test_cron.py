"""Cron expressions: what they mean, what is refused, and simple ones against a search by hand."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.config.cron import Cron
from hybrid.errors import SpecError

NEW_YEAR = datetime(2024, 1, 1, tzinfo=UTC)  # a Monday


def times(text: str, count: int = 2, after: datetime = NEW_YEAR) -> list[str]:
    cron, at_ms, found = Cron.parse(text, "t.json", "schedule"), int(after.timestamp() * 1000), []
    for _ in range(count):
        following = cron.next_after(at_ms)
        if following is None:
            break
        at_ms = following
        found.append(datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%a %Y-%m-%d %H:%M:%S"))
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 */10 * ? * *", ["Mon 2024-01-01 00:10:00", "Mon 2024-01-01 00:20:00"]),
        ("0 0/5 * * * ?", ["Mon 2024-01-01 00:05:00", "Mon 2024-01-01 00:10:00"]),
        ("*/10 * * * *", ["Mon 2024-01-01 00:10:00", "Mon 2024-01-01 00:20:00"]),
        ("30 0 22-1 * * ?", ["Mon 2024-01-01 00:00:30", "Mon 2024-01-01 01:00:30"]),
        (" 0 0 0 ? * mon-Fri ", ["Tue 2024-01-02 00:00:00", "Wed 2024-01-03 00:00:00"]),
        ("0 0 0 ? JUN-JUL *", ["Sat 2024-06-01 00:00:00", "Sun 2024-06-02 00:00:00"]),
        # Weekdays: Quartz counts from 1 = SUN, Unix from 0 = SUN.
        ("0 0 0 ? * 1", ["Sun 2024-01-07 00:00:00", "Sun 2024-01-14 00:00:00"]),
        ("0 0 0 ? * 7", ["Sat 2024-01-06 00:00:00", "Sat 2024-01-13 00:00:00"]),
        ("0 0 0 ? * L", ["Sat 2024-01-06 00:00:00", "Sat 2024-01-13 00:00:00"]),
        ("0 0 0 ? * 7-1", ["Sat 2024-01-06 00:00:00", "Sun 2024-01-07 00:00:00"]),
        ("0 0 0 ? * 2/3", ["Thu 2024-01-04 00:00:00", "Mon 2024-01-08 00:00:00"]),
        ("0 0 * * 1", ["Mon 2024-01-08 00:00:00", "Mon 2024-01-15 00:00:00"]),
        ("0 0 * * 0", ["Sun 2024-01-07 00:00:00", "Sun 2024-01-14 00:00:00"]),
        ("0 0 * * 7", ["Sun 2024-01-07 00:00:00", "Sun 2024-01-14 00:00:00"]),
        ("0 0 3 * SAT", ["Wed 2024-01-03 00:00:00", "Sat 2024-01-06 00:00:00"]),  # in Unix, either
        # The last, the third, the nearest one.
        ("0 0 0 L * ?", ["Wed 2024-01-31 00:00:00", "Thu 2024-02-29 00:00:00"]),
        ("0 0 0 ? * 6L", ["Fri 2024-01-26 00:00:00", "Fri 2024-02-23 00:00:00"]),
        ("0 0 0 ? * FRI#3", ["Fri 2024-01-19 00:00:00", "Fri 2024-02-16 00:00:00"]),
        ("0 0 0 ? * 6#3,2#1", ["Fri 2024-01-19 00:00:00", "Mon 2024-02-05 00:00:00"]),
        ("0 0 0 ? * 5#5", ["Thu 2024-02-29 00:00:00", "Thu 2024-05-30 00:00:00"]),
        ("0 0 0 16W 3 ?", ["Fri 2024-03-15 00:00:00", "Mon 2025-03-17 00:00:00"]),
        # Years, and gaps of many of them.
        ("0 0 0 1 1 ? 2030,2099", ["Tue 2030-01-01 00:00:00", "Thu 2099-01-01 00:00:00"]),
        ("0 0 0 1 1 ? 2025-2030/5", ["Wed 2025-01-01 00:00:00", "Tue 2030-01-01 00:00:00"]),
        ("0 0 0 29 2 ?", ["Thu 2024-02-29 00:00:00", "Tue 2028-02-29 00:00:00"]),
        ("0 0 0 1 1 ? 2020", []),
    ],
)
def test_times(text: str, expected: list[str]) -> None:
    assert times(text) == expected
    assert Cron.parse(text, "t.json", "schedule").text == text.strip()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "null is not a cron expression. Write it like"),
        (5, "5 is not"),
        ("", "'' is not"),
        ("@daily", "it has 1 field, not 5, 6 or 7"),
        ("* * * * * * * *", "it has 8 fields"),
        ("0 60 * * * ?", "'60' cannot be a minute: it goes from 0 to 59"),
        ("0 */60 * * * ?", "'60' cannot be a step in the minute: it goes from 1 to 59"),
        ("0 */0 * * * ?", "'0' cannot be a step"),
        ("0 0 0 ? * 0", "'0' cannot be a weekday: it goes from 1 to 7"),
        ("0 0 0 ? * SUNDAY", "'SUNDAY' cannot be a weekday"),
        ("0 0 0 ? * MON#6", "a month has a weekday 1 to 5 times"),
        ("0 0 0 ? * MON,WED#2", "'MON,WED#2' mixes weekdays"),
        ("0 0 0 ? * ?", "not for both"),
        ("0 0 0 1 * MON", "one of them has to be '?'"),
        ("? * * * * *", "'?' cannot be a second"),
        ("0 0 0 LW * ?", "'LW' is not built"),
        ("0 0 0 L-3 * ?", "'L-3' is not built"),
        ("0 0 0 32W * ?", "'32' cannot be a day of the month"),
        ("0 0 0 1 1 ? 2101", "'2101' cannot be a year"),
        ("0 0 0 1 1 ? 2030-2025", "'2030-2025' runs backwards"),
        ("0 0 ? * L", "'L' cannot be a weekday: it goes from 0 to 7"),
        ("H * * * *", "'H' cannot be a minute"),
        ("\N{FULLWIDTH DIGIT ONE} * * * *", "cannot be a minute"),
        ("\N{ARABIC-INDIC DIGIT ONE} * * * *", "cannot be a minute"),
        ("1,,2 * * * *", "'' cannot be a minute"),
        ("1-2-3 * * * *", "'1-2-3' cannot be a minute"),
        ("1" * 300, "is not a cron expression"),
        ("0 0 0 30 2 ?", "'0 0 0 30 2 ?' never comes: there is no such day"),
        ("0 0 31 4,6 *", "never comes"),
        ("0 0 0 29 2 ? 2026", "never comes"),
    ],
)
def test_what_is_refused(text: object, says: str) -> None:
    with pytest.raises(SpecError) as caught:
        Cron.parse(text, "t.json", "task.schedule")
    assert str(caught.value).startswith("t.json: task.schedule: ") and says in str(caught.value)


def test_the_time_itself_does_not_count_and_parts_of_a_second_do() -> None:
    cron = Cron.parse("* * * * * ?", "t.json", "schedule")
    assert [cron.next_after(ms) for ms in (-1, 0, 999, 1000, 1001)] == [0, 1000, 1000, 2000, 2000]


# Against a search by hand: fields as sets of values, days and their times one after the other.


def field(low: int, high: int) -> st.SearchStrategy[tuple[str, frozenset[int]]]:
    """A field's text and the values it stands for."""
    value = st.integers(low, high)
    every = frozenset(range(low, high + 1))
    return st.one_of(
        st.just(("*", every)),
        st.sets(value, min_size=1, max_size=4).map(lambda found: (",".join(map(str, found)), frozenset(found))),
        st.tuples(value, value)
        .map(sorted)
        .map(lambda two: (f"{two[0]}-{two[1]}", frozenset(range(two[0], two[1] + 1)))),
        st.tuples(value, st.integers(1, high)).map(
            lambda two: (f"{two[0]}/{two[1]}", frozenset(range(two[0], high + 1, two[1])))
        ),
    )


def search(after: datetime, second, minute, hour, day, month, weekday) -> datetime | None:
    clock = [(h, m, s) for h, m, s in itertools.product(sorted(hour), sorted(minute), sorted(second))]
    midnight = after.replace(hour=0, minute=0, second=0)
    for count in range(366 * 9):
        date = midnight + timedelta(days=count)
        if date.month in month and date.day in day and (date.isoweekday() % 7 + 1) in weekday:
            for h, m, s in clock:
                if date.replace(hour=h, minute=m, second=s) > after:
                    return date.replace(hour=h, minute=m, second=s)
    return None


@pytest.mark.slow
@given(
    second=field(0, 59),
    minute=field(0, 59),
    hour=field(0, 23),
    day=field(1, 31),
    month=field(1, 12),
    weekday=field(1, 7),
    by_weekday=st.booleans(),
    after=st.datetimes(datetime(1990, 1, 1), datetime(2060, 1, 1), timezones=st.just(UTC)),
)
def test_simple_expressions(second, minute, hour, day, month, weekday, by_weekday, after) -> None:
    after = after.replace(microsecond=0)
    day, weekday = (("?", frozenset(range(1, 32))), weekday) if by_weekday else (day, ("?", frozenset(range(1, 8))))
    fields = (second, minute, hour, day, month, weekday)
    text = " ".join(one for one, _ in fields)
    expected = search(after, *(values for _, values in fields))
    if expected is None:
        with pytest.raises(SpecError, match="never comes"):
            Cron.parse(text, "t.json", "schedule")
        return
    found = Cron.parse(text, "t.json", "schedule").next_after(int(after.timestamp() * 1000))
    assert found == int(expected.timestamp() * 1000), text
