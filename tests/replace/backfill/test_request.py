"""What a backfill may be asked for: windows and their buckets."""

from dataclasses import replace

import pytest

from hybrid.config.table_config import MergeLevel
from hybrid.errors import UsageError
from hybrid.replace.backfill.request import window_of
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
