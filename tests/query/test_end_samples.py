"""End offsets at some instants: which of them rows have reached."""

from __future__ import annotations

from hybrid.query.cache.end_samples import EndOffsets, EndSamples
from tests.query.halves import KEY

OTHER = KEY._replace(partition=1)


def test_the_newest_that_is_reached_counts() -> None:
    samples = EndSamples()
    for at, end in ((1.0, 10), (2.0, 20), (3.0, 30)):
        samples.add(EndOffsets(at, {KEY: end, OTHER: 5}))
    assert samples.reached_at({KEY: 30}) is None, "each partition counts"
    assert samples.reached_at({KEY: 9, OTHER: 5}) is None
    assert samples.reached_at({KEY: 25, OTHER: 5}) == 2.0 and not samples.is_reached
    assert samples.reached_at({KEY: 25, OTHER: 5}) == 2.0
    assert samples.reached_at({KEY: 30, OTHER: 5}) == 3.0 and samples.is_reached


def test_the_same_sample_counts_once() -> None:
    samples, sample = EndSamples(), EndOffsets(1.0, {KEY: 10})
    samples.add(sample)
    assert samples.reached_at({KEY: 10}) == 1.0
    samples.add(sample)
    assert samples.is_reached


def test_whoever_stays_behind_for_long_keeps_the_oldest_and_the_newest() -> None:
    samples = EndSamples()
    for number in range(1, 1001):
        samples.add(EndOffsets(float(number), {KEY: number}))
    assert len(samples._samples) <= 60
    assert samples.reached_at({KEY: 1}) == 1.0
    assert samples.reached_at({KEY: 1000}) == 1000.0 and samples.is_reached


def test_ends_that_fell_hold_back_no_newer_ones() -> None:
    """After an unclean leader election a log may be shorter than it was said to be."""
    samples = EndSamples()
    samples.add(EndOffsets(1.0, {KEY: 100}))
    samples.add(EndOffsets(2.0, {KEY: 60}))
    assert samples.reached_at({KEY: 60}) == 2.0 and samples.is_reached
