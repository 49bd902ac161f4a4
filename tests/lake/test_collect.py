"""Rows of frames as Python values: instants at both ends of time, in structs and lists, on any clock."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from hybrid.lake.collect import collect_rows, rows_of
from hybrid.lake.commit_context import CommitContext

YEAR_1 = datetime(1, 1, 1, tzinfo=UTC)
LAST = datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)
YEAR_1_MICROS, LAST_MICROS = -62_135_596_800_000_000, 253_402_300_799_999_999


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Tokyo", None])
def test_instants_at_both_ends_of_time_are_in_utc(zone: str | None) -> None:
    kind = pa.timestamp("us", zone)
    inner = pa.struct([pa.field("t", kind), pa.field("i", pa.int32())])
    table = pa.table(
        {
            "t": pa.array([YEAR_1_MICROS, LAST_MICROS, None], kind),
            "s": pa.array(
                [(YEAR_1_MICROS, 1), None, (LAST_MICROS, 2)], pa.struct([("t", pa.int64()), ("i", pa.int32())])
            ).cast(inner),
            "l": pa.array([[YEAR_1_MICROS], None, []], pa.list_(pa.int64())).cast(pa.list_(kind)),
            "r": [b"x", None, b""],
        }
    )
    assert rows_of(table) == [
        {"t": YEAR_1, "s": {"t": YEAR_1, "i": 1}, "l": [YEAR_1], "r": b"x"},
        {"t": LAST, "s": None, "l": None, "r": None},
        {"t": None, "s": {"t": LAST, "i": 2}, "l": [], "r": b""},
    ]


def test_an_instant_that_python_cannot_hold_is_its_milliseconds() -> None:
    table = pa.table({"t": pa.array([253_402_300_800_000_000], pa.timestamp("us", "UTC"))})
    assert rows_of(table) == [{"t": "253402300800000 ms"}]


@pytest.mark.spark
def test_spark_gives_instants_at_both_ends_of_time(workbench: CommitContext) -> None:
    frame = workbench.spark.sql(
        f"select timestamp_micros({YEAR_1_MICROS}L) as t, struct(timestamp_micros({LAST_MICROS}L) as u) as s"
    )
    assert collect_rows(frame) == [{"t": YEAR_1, "s": {"u": LAST}}]
