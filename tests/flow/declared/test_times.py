"""Times of a flow's rows: whole numbers all the way, as a double holds no 19 digits."""

from __future__ import annotations

import pytest

from hybrid.flow.declared.convert import _millis
from hybrid.lake.commit_context import CommitContext
from hybrid.schema.timeformat import TimeFormat

VALUES = (1_699_999_999_999_999_999, 1_700_000_000_000_000_000, -1, 0, 253_402_300_799_999_999, 9_007_199_254_740_993)


@pytest.mark.spark
@pytest.mark.parametrize("fmt", ["1:NANOSECONDS:EPOCH", "7:NANOSECONDS:EPOCH", "1:MICROSECONDS:EPOCH"])
def test_times_below_a_millisecond_are_cut_exactly(workbench: CommitContext, fmt: str) -> None:
    from pyspark.sql import functions as F

    form = TimeFormat.parse(fmt, "s", "f")
    values = [value // form.step_ns for value in VALUES] if fmt.startswith("1:MICRO") else list(VALUES)
    frame = workbench.spark.createDataFrame([(value,) for value in values], "ts bigint")
    found = [row[0] for row in frame.select(_millis(F.col("ts"), form)).collect()]
    expected = [value * form.step_ns // 1_000_000 if abs(value * form.step_ns) < 2**63 else None for value in values]
    assert found == expected
