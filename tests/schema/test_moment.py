"""Moments on a command line."""

import pytest

from hybrid.config.offset_place import parse_place
from hybrid.errors import QueryError, UsageError
from hybrid.query.time_travel import QueriedMoment
from hybrid.schema.moment import parse_moment
from hybrid.schema.schema import FieldKind, FieldSpec
from hybrid.schema.timeformat import TimeFormat
from hybrid.schema.types import DataType

NOW, DAY = 1_700_000_000_000, 86_400_000


def column(form: str, data_type: DataType = DataType.LONG) -> FieldSpec:
    return FieldSpec("ts", data_type, FieldKind.DATE_TIME, time_format=TimeFormat.parse(form, "f", "format", data_type))


@pytest.mark.parametrize(
    ("form", "data_type", "text", "time_ms"),
    [
        ("1:MILLISECONDS:EPOCH", DataType.LONG, "1632463470000", 1632463470000),
        ("1:MILLISECONDS:EPOCH", DataType.LONG, "2021-09-24T06:04:30Z", 1632463470000),
        ("1:MILLISECONDS:EPOCH", DataType.LONG, " 2021-09-24T08:04:30.0009+02:00", 1632463470000),
        ("1:DAYS:EPOCH", DataType.INT, "2", 172_800_000),
        ("EPOCH|SECONDS|5", DataType.LONG, "3", 15_000),
        ("SIMPLE_DATE_FORMAT|yyyyMMdd", DataType.STRING, "19700103", 172_800_000),
        ("SIMPLE_DATE_FORMAT|yyyy-MM-dd|Asia/Tokyo", DataType.STRING, "1970-01-03", 140_400_000),
        ("TIMESTAMP", DataType.TIMESTAMP, "1970-01-01T00:00:01-01:00", 3_601_000),
        ("TIMESTAMP", DataType.TIMESTAMP, "5000", 5000),
    ],
)
def test_iso_8601_or_the_columns_own_way(form: str, data_type: DataType, text: str, time_ms: int) -> None:
    assert parse_moment(text, column(form, data_type), "--at") == time_ms


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("2021-09-24T06:04:30", "--at 2021-09-24T06:04:30: has no zone. Write it like 2021-09-24T08:00:00Z"),
        ("yesterday", "--at yesterday: is no time."),
        ("", "is no time"),
        ("1e9", "or as 'ts' writes times (1:MILLISECONDS:EPOCH)"),
    ],
)
def test_what_is_no_moment(text: str, part: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_moment(text, column("1:MILLISECONDS:EPOCH"), "--at")
    assert part in str(caught.value)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-02", DAY),
        ("1970-01-02T00:00:00Z", DAY),
        ("1970-01-02T02:00+02:00", DAY),
        ("2d", NOW - 2 * DAY),
        ("1d12h", NOW - DAY * 3 // 2),
        ("1632463200000", 1_632_463_200_000),
    ],
)
def test_every_option_reads_the_same_times(text: str, ms: int) -> None:
    """Of a backfill and a boundary, of a reset, of time travel, of what a job covers."""
    assert parse_moment(text, column("SIMPLE_DATE_FORMAT|yyyyMMdd", DataType.STRING), "--from", NOW) == ms
    assert parse_place(text, "orders", NOW, "--to").timestamp_ms == ms
    assert QueriedMoment.parse(text, NOW).time_ms == ms


@pytest.mark.parametrize("text", ["noon", "2021-09-24T06:00:00", "2021-13-01", "42", "2x", ""])
def test_what_is_no_time_is_refused_alike(text: str) -> None:
    with pytest.raises(UsageError, match=r"2021-09-24 \(UTC\), 2d \(ago\)"):
        parse_moment(text, column("SIMPLE_DATE_FORMAT|yyyyMMdd", DataType.STRING), "--from", NOW)
    with pytest.raises(UsageError):
        parse_place(text, "orders", NOW, "--to")
    if text != "42":  # a small number of milliseconds is a moment for time travel, as it was before
        with pytest.raises(QueryError) as no:
            QueriedMoment.parse(text, NOW)
        assert "2d (ago)" in str(no.value.hint)
