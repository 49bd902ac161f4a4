"""Whether a clock is believed: leaps while the machine runs, across restarts, and long idle times."""

import pytest

from hybrid.clock import ClockReading
from hybrid.table.clock_trust import HOUR_MS, LEAP_MS, STEADY_MS, ClockTrust, observe

DAY = 24 * HOUR_MS
YEAR = 365 * DAY
T = 1_800_000_000_000


def at(wall, running=0, boot="a"):
    return ClockReading(wall, running, boot)


def looked(before, now, kafka=None):
    return observe(before, now, lambda: kafka)


def walked(before, *readings):
    for reading in readings:
        before = looked(before, reading)
    return before


def test_a_clock_that_goes_on_is_believed_however_long_nothing_came():
    """23: a table that is idle for months still expires: its commits and messages are old, the machine has run on."""
    trust = ClockTrust(at(T))
    for day in range(1, 400):
        trust = looked(trust, at(T + day * DAY, day * DAY), kafka=T)
        assert not trust.leapt_ms


@pytest.mark.parametrize("leap", [LEAP_MS + 1, 40 * DAY, 10 * YEAR])
def test_a_clock_that_leaps_while_the_machine_runs_is_doubted(leap):
    """23: one NTP fault."""
    trust = looked(ClockTrust(at(T)), at(T + leap + 60_000, 60_000))
    assert trust.leapt_ms == leap and trust.believed == at(T)
    assert not looked(trust, at(T + 120_000, 120_000)).leapt_ms, "set right again"


def test_a_small_step_is_none():
    assert not looked(ClockTrust(at(T)), at(T + LEAP_MS, 0)).leapt_ms


def test_a_machine_that_was_asleep_or_off_for_a_night_is_believed():
    assert not looked(ClockTrust(at(T)), at(T + 14 * HOUR_MS, 0, "b")).leapt_ms
    assert not looked(ClockTrust(at(T)), at(T + 90 * DAY, 90 * DAY)).leapt_ms, "asleep: its running time went on"


def test_a_machine_that_was_off_for_months_is_believed_after_a_day_of_steady_running():
    """23: nobody can tell it from a wrong clock at once; it expires a day later all the same."""
    start = T + 90 * DAY
    trust = looked(ClockTrust(at(T)), at(start, 0, "b"))
    assert trust.leapt_ms == 90 * DAY
    for hour in range(1, 24):
        trust = looked(trust, at(start + hour * HOUR_MS, hour * HOUR_MS, "b"))
        assert trust.leapt_ms, hour
    trust = looked(trust, at(start + STEADY_MS, STEADY_MS, "b"))
    assert not trust.leapt_ms and trust.believed.wall_ms == start + STEADY_MS


def test_steady_running_adds_up_over_restarts():
    start, trust = T + 90 * DAY, looked(ClockTrust(at(T)), at(T + 90 * DAY, 0, "b0"))
    for day in range(3):
        begun = start + day * DAY
        trust = walked(trust, at(begun, 0, f"b{day}"), at(begun + 10 * HOUR_MS, 10 * HOUR_MS, f"b{day}"))
    assert not trust.leapt_ms


def test_a_clock_that_leaps_again_while_it_is_doubted_begins_anew():
    trust = walked(ClockTrust(at(T)), at(T + YEAR, 0), at(T + YEAR + 23 * HOUR_MS, 23 * HOUR_MS))
    trust = looked(trust, at(T + 2 * YEAR, 23 * HOUR_MS))
    assert trust.steady_ms == 0
    assert looked(trust, at(T + 2 * YEAR + 2 * HOUR_MS, 25 * HOUR_MS)).leapt_ms


def test_messages_of_this_time_confirm_it_at_once():
    """23: Kafka's timestamps are the producers' clocks."""
    off = at(T + 90 * DAY, 0, "b")
    assert not looked(ClockTrust(at(T)), off, kafka=T + 90 * DAY - HOUR_MS).leapt_ms
    assert looked(ClockTrust(at(T)), off, kafka=T).leapt_ms, "those from before tell nothing"
    assert looked(ClockTrust(at(T)), off, kafka=T + 45 * DAY).leapt_ms, "nor those of another time"


def test_a_clock_that_goes_back_drops_nothing_early_and_is_not_refused():
    trust = looked(ClockTrust(at(T)), at(T - YEAR, 60_000))
    assert trust.leapt_ms == 0 and trust.believed == at(T)
    assert looked(trust, at(T + 2 * HOUR_MS, 2 * HOUR_MS)) == ClockTrust(at(T + 2 * HOUR_MS, 2 * HOUR_MS))


def test_the_first_look_has_nothing_to_go_by():
    assert looked(None, at(T), kafka=T - YEAR) == ClockTrust(at(T))
