"""What a backfill may be asked for: windows and their buckets."""

from dataclasses import replace

import pytest

from hybrid.config.table_config import MergeLevel
from hybrid.errors import UsageError
from hybrid.replace.backfill.request import BUCKETS_MAX, whole_window, window_of
from hybrid.table.boundary import Boundary
from hybrid.table.correction_window import CorrectionWindow
from tests.replace.backfill.lab import BUCKET, lab_spec


def test_buckets_divide_nothing_that_was_or_will_be_rounded() -> None:
    plain, end = lab_spec(), 60 * BUCKET
    rounds = replace(plain, merge_levels=(MergeLevel(20 * BUCKET, round_ms=10 * BUCKET, name="long"),))
    for spec, boundary, step in (
        (plain, Boundary(), BUCKET),
        (rounds, Boundary(), 10 * BUCKET),
        (plain, Boundary(step_ms=10 * BUCKET), 10 * BUCKET),  # the config rounds no more
        (rounds, Boundary(step_ms=4 * BUCKET), 20 * BUCKET),
        (plain, Boundary(step_ms=BUCKET // 4), BUCKET),
    ):
        assert window_of(spec, boundary, 0, end) == CorrectionWindow(0, end, step)
    for spec, boundary in ((rounds, Boundary()), (plain, Boundary(step_ms=10 * BUCKET))):
        with pytest.raises(UsageError, match="divides times of 'orders' that are rounded"):
            window_of(spec, boundary, 0, 15 * BUCKET)


def test_a_window_without_ends_reaches_as_far_as_the_rows_do() -> None:
    spec, times = lab_spec(), (1500, 7000)
    for start, end, found in (
        (None, None, (1000, 8000)),
        (2500, None, (2500, 8000)),
        (None, 2500, (1000, 2500)),
        (9500, None, (9500, 10_000)),  # beyond the last row
        (None, 500, (0, 500)),  # before the first
    ):
        assert whole_window(spec, Boundary(), start, end, times) == CorrectionWindow(*found, BUCKET)
    assert whole_window(spec, Boundary(), None, None, None) == CorrectionWindow(0, BUCKET, BUCKET)
    assert whole_window(spec, Boundary(), 7500, None, None) == CorrectionWindow(7500, 8000, BUCKET)
    assert whole_window(replace(spec, time_column=None), Boundary(), None, None, times) is None
    rounded = whole_window(spec, Boundary(step_ms=3 * BUCKET), None, None, times)
    assert rounded == CorrectionWindow(0, 9 * BUCKET, 3 * BUCKET)


def test_buckets_are_longer_where_there_would_be_too_many() -> None:
    window = whole_window(lab_spec(), Boundary(), None, None, (0, 10**12))
    assert window is not None and window.bucket_count <= BUCKETS_MAX and window.period_ms % BUCKET == 0
    assert window.start == 0 and window.end > 10**12
