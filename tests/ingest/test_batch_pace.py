"""Sizes of batches and rests between them: each rule, and the lag under steady streams of any sustainable rate."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.ingest.batch import BATCH_OFFSETS_MAX
from hybrid.ingest.batch_pace import LAG_S, BatchPace


def test_the_first_batch_is_small() -> None:
    assert BatchPace().offsets_max == 100_000


@pytest.mark.parametrize(
    ("took_s", "behind", "offsets_max"),
    [
        (2.0, 0, 50_000),
        (0.5, 0, 200_000),
        (0.1, 0, 800_000),
        (1.0, 100_000, 100_000),
        (1.0, 300_000, 300_000),
        (1.0, 700_000, 700_000),
        (1.0, 10**9, 800_000),
        (2.0, 10**9, 500_000),
        (100.0, 0, 20_000),
    ],
)
def test_a_full_batch_sizes_the_next_one_by_time(took_s: float, behind: int, offsets_max: int) -> None:
    """A second near the end of the stream, ten behind a long backlog; at most eight times as many offsets."""
    assert BatchPace().after(100_000, took_s, behind).offsets_max == offsets_max


def test_no_batch_is_larger_than_memory_allows() -> None:
    pace = BatchPace(BATCH_OFFSETS_MAX).after(BATCH_OFFSETS_MAX, 1.0, 10**9)
    assert pace.offsets_max == BATCH_OFFSETS_MAX


def test_a_batch_that_was_not_full_shrinks_nothing_unless_it_took_long() -> None:
    pace = BatchPace(100_000)
    assert pace.after(500, 0.4, 0) == BatchPace(100_000, 0.4), "most of it is the fixed cost of a commit"
    assert pace.after(50_000, 2.0, 0).offsets_max == 25_000
    assert pace.after(0, 0.3, 0) == pace, "segments were sealed, nothing was read"


@pytest.mark.parametrize(
    ("took_s", "interval_s", "rest_s"),
    [
        (0.1, 1.0, 1.0),
        (0.35, 1.0, 1.05),
        (0.5, 1.0, 0.8),
        (0.9, 1.0, 0.0),
        (5.0, 1.0, 0.0),
        (0.5, 10.0, 8.8),
        (0.2, 0.0, 0.6),
    ],
)
def test_the_rest_is_what_two_batches_leave_of_the_lag(took_s: float, interval_s: float, rest_s: float) -> None:
    assert BatchPace(took_s=took_s).rest_s(interval_s) == pytest.approx(rest_s)


def lived(rate: float, fixed_s: float, speed: float, backlog: int, seconds: float) -> tuple[list[float], float]:
    """The longest wait of each commit's messages once caught up, and when that was, under a steady stream."""
    pace, now, end, position, lags, caught_up = BatchPace(), 0.0, float(backlog), 0.0, list[float](), seconds
    while now < seconds:
        end = backlog + rate * now
        offsets = int(min(end - position, pace.offsets_max))
        oldest_at = max(0.0, (position - backlog) / rate)
        took_s = fixed_s + offsets / speed
        position, now = position + offsets, now + took_s
        behind = int(end - position)
        pace = pace.after(offsets, took_s, behind)
        if behind <= 0:
            caught_up = min(caught_up, now)
            now += pace.rest_s(1.0)
        if caught_up < seconds and now > caught_up + 10:
            lags.append(now - oldest_at - (pace.rest_s(1.0) if behind <= 0 else 0.0))
    return lags, caught_up


@pytest.mark.slow
@given(
    st.floats(100, 200_000),
    st.floats(0.05, 0.6),
    st.floats(20_000, 500_000),
    st.sampled_from([0, 1_000_000, 10_000_000]),
)
def test_at_sustainable_rates_no_message_waits_longer(rate: float, fixed_s: float, speed: float, backlog: int) -> None:
    """A rate is sustainable if what arrives during a lag is ingested in two batches within it."""
    if 2 * (fixed_s + rate / speed) > LAG_S - 0.2 or rate > 0.4 * speed:
        return
    lags, caught_up = lived(rate, fixed_s, speed, backlog, 3000.0)
    assert caught_up < 2900, "a backlog is caught up with"
    assert max(lags) <= LAG_S


def test_a_backlog_is_committed_nearly_as_fast_as_in_one_batch() -> None:
    _, caught_up = lived(1.0, 0.4, 100_000, 4_000_000, 3000.0)
    assert caught_up < 1.15 * 40.4
