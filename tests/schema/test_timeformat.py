import pickle
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.errors import DataError, SpecError
from hybrid.schema.timeformat import MAX_MS, MIN_MS, TimeFormat
from hybrid.schema.types import DataType

MS = 1_632_463_351_123  # 2021-09-24T06:02:31.123Z


def form(text: str, data_type: str = "LONG") -> TimeFormat:
    return TimeFormat.parse(text, "f", "p", DataType(data_type))


@pytest.mark.parametrize(
    ("pattern", "data_type", "text"),
    [
        ("ddMMyyyy", "INT", "02012001"), ("MMyyyy", "INT", "012001"), ("HH", "LONG", "03"),
        ("ddMMyyyy", "STRING", None), ("yyyyMMdd", "INT", None), ("yyyyMMddHHmmss", "LONG", None),
        ("yyyy", "INT", None),
    ],
)  # fmt: skip
def test_patterns_of_which_a_number_loses_zeros(pattern: str, data_type: str, text: str | None) -> None:
    assert form(f"SIMPLE_DATE_FORMAT|{pattern}", data_type).unreadable_text == text


@pytest.mark.parametrize(
    ("text", "data_type", "stored"),
    [
        ("1:MILLISECONDS:EPOCH", "LONG", MS),
        ("EPOCH|MILLISECONDS|1", "LONG", MS),
        ("EPOCH", "LONG", MS),
        ("1:MILLISECONDS:EPOCH", "STRING", str(MS)),
        ("1:SECONDS:EPOCH", "INT", 1_632_463_351),
        ("EPOCH|SECONDS|5", "LONG", 326_492_670),
        ("5:MINUTES:EPOCH", "LONG", 5_441_544),
        ("1:MICROSECONDS:EPOCH", "LONG", MS * 1000),
        ("1:NANOSECONDS:EPOCH", "LONG", MS * 1_000_000),
        ("1:DAYS:EPOCH", "INT", 18_894),
        ("1:DAYS:SIMPLE_DATE_FORMAT:yyyyMMdd", "INT", 20_210_924),
        ("1:DAYS:SIMPLE_DATE_FORMAT:yyyyMMdd", "STRING", "20210924"),
        ("SIMPLE_DATE_FORMAT|yyyy-MM-dd", "STRING", "2021-09-24"),
        ("SIMPLE_DATE_FORMAT|yyyy-MM-dd HH:mm|America/New_York", "STRING", "2021-09-24 02:02"),
        ("1:HOURS:SIMPLE_DATE_FORMAT:yyyy-MM-dd HH tz(Asia/Tokyo)", "STRING", "2021-09-24 15"),
        ("SIMPLE_DATE_FORMAT|yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "STRING", "2021-09-24T06:02:31.123Z"),
        ("SIMPLE_DATE_FORMAT|yyyy-MM-dd'T'HH:mm:ssZ|Europe/Berlin", "STRING", "2021-09-24T08:02:31+0200"),
        ("SIMPLE_DATE_FORMAT|dd MMM yyyy h:mm a", "STRING", "24 Sep 2021 6:02 AM"),
        ("SIMPLE_DATE_FORMAT|'o''clock' HH MMMM d, yyyy", "STRING", "o'clock 06 September 24, 2021"),
        ("TIMESTAMP", "TIMESTAMP", datetime(2021, 9, 24, 6, 2, 31, 123_000, tzinfo=UTC)),
        ("1:MILLISECONDS:TIMESTAMP", "TIMESTAMP", datetime(2021, 9, 24, 6, 2, 31, 123_000, tzinfo=UTC)),
    ],
)
def test_stored_values(text: str, data_type: str, stored: object) -> None:
    read = pickle.loads(pickle.dumps(form(text, data_type)))
    assert read.from_millis(MS) == stored
    assert type(read.from_millis(MS)) is type(stored)
    # Back again: the first millisecond of the step that holds MS.
    assert read.from_millis(read.to_millis(stored)) == stored
    assert read.to_millis(stored) <= MS


def test_dates_stand_for_their_first_millisecond_in_the_zone() -> None:
    assert form("1:DAYS:SIMPLE_DATE_FORMAT:yyyyMMdd").to_millis(20_210_924) == 1_632_441_600_000
    assert form("SIMPLE_DATE_FORMAT|yyyyMMdd|Europe/Berlin").to_millis("20210924") == 1_632_434_400_000
    assert form("SIMPLE_DATE_FORMAT|yyyy-MM-dd HH:mm:ssXXX", "STRING").to_millis("2021-09-24 08:00:00+02:00") == (
        1_632_463_200_000
    )


@pytest.mark.parametrize(
    ("text", "data_type", "part"),
    [
        ("1:MILLIS:EPOCH", "LONG", "Did you mean 'MILLISECONDS'?"),
        ("EPOCH|FORTNIGHTS", "LONG", "'FORTNIGHTS' is not a time unit. Known are"),
        ("0:DAYS:EPOCH", "LONG", "'0' is not a size"),
        ("1:DAYS:EPOC", "LONG", "is not a time format"),
        ("", "LONG", "is not a time format"),
        ("SIMPLE_DATE_FORMAT", "STRING", "no date pattern"),
        ("SIMPLE_DATE_FORMAT|yyyy-'W'ww", "STRING", "'ww'"),
        ("SIMPLE_DATE_FORMAT|yy", "STRING", "'yy'"),
        ("SIMPLE_DATE_FORMAT|yyyy'T", "STRING", "quote"),
        ("SIMPLE_DATE_FORMAT|yyyy yyyy", "STRING", "twice"),
        ("SIMPLE_DATE_FORMAT|hh:mm", "STRING", "'HH'"),
        ("SIMPLE_DATE_FORMAT|--", "STRING", "no date or time letter"),
        ("SIMPLE_DATE_FORMAT|yyyy-MM-dd", "INT", "dataType is INT"),
        ("SIMPLE_DATE_FORMAT|yyyy|Mars/Olympus", "INT", "not a time zone"),
        ("SIMPLE_DATE_FORMAT|yyyy|../../etc/passwd", "INT", "not a time zone"),
    ],
)
def test_errors_name_place_and_cause(text: str, data_type: str, part: str) -> None:
    with pytest.raises(SpecError) as caught:
        form(text, data_type)
    assert str(caught.value).startswith("f: p: ") and part in str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1:MILLISECONDS:EPOCH", "soon"),
        ("1:MILLISECONDS:EPOCH", True),
        ("1:MILLISECONDS:EPOCH", 1.5),
        ("1:MILLISECONDS:EPOCH", MAX_MS + 1),
        ("1:MILLISECONDS:EPOCH", MIN_MS - 1),
        ("1:DAYS:EPOCH", 2**63),
        ("SIMPLE_DATE_FORMAT|yyyyMMdd", "20210931"),
        ("SIMPLE_DATE_FORMAT|yyyyMMdd", "2021-09-30"),
        ("SIMPLE_DATE_FORMAT|yyyyMMdd", "00000101"),
        ("SIMPLE_DATE_FORMAT|yyyyMMddXXX", "00010101+10:00"),
    ],
)
def test_what_is_no_time_is_a_data_error(text: str, value: object) -> None:
    with pytest.raises(DataError, match="is not a time in the format"):
        form(text, "LONG" if "XXX" not in text else "STRING").to_millis(value)


@given(st.integers(MIN_MS, MAX_MS))
def test_seconds_and_patterns_agree(millis: int) -> None:
    written = form("SIMPLE_DATE_FORMAT|yyyy-MM-dd HH:mm:ss.SSS", "STRING")
    assert written.to_millis(written.from_millis(millis)) == millis
    seconds = form("1:SECONDS:EPOCH")
    assert seconds.to_millis(seconds.from_millis(millis)) == millis - millis % 1000


@pytest.mark.parametrize(
    ("pattern", "last"),
    [
        ("yyyy-MM-dd HH:mm:ss.SSS", "1970-01-01 00:00:01.234"),
        ("yyyy-MM-dd HH:mm:ss.SSSS", "1970-01-01 00:00:01.2349"),
        ("yyyy-MM-dd HH:mm:ss.SSSSSS", "1970-01-01 00:00:01.234999"),
        ("yyyy-MM-dd HH:mm:ss.SSSSSSSSSX", "1970-01-01 00:00:01.234999999Z"),
        ("SSSSSSS ss", "2349999 01"),
    ],
)
def test_the_last_text_of_a_millisecond(pattern: str, last: str) -> None:
    form = TimeFormat.parse(f"SIMPLE_DATE_FORMAT|{pattern}", "s", "p", DataType.STRING)
    assert form.last_in_milli(1234) == last and form.to_millis(last) == 1234
