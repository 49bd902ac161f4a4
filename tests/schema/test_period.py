import pytest

from hybrid.errors import SpecError
from hybrid.schema.period import parse_period, period_text


@pytest.mark.parametrize(
    ("text", "millis"),
    [("2h", 7_200_000), ("1m", 60_000), ("1d", 86_400_000), ("30s", 30_000), ("1d12h", 129_600_000), ("500ms", 500),
     (" 2H ", 7_200_000), ("0d", 0)],
)  # fmt: skip
def test_reads_periods(text: str, millis: int) -> None:
    assert parse_period(text, "f", "p") == millis


@pytest.mark.parametrize("text", ["", "2", "h", "2 h", "2x", "-2h", "1h1d", None, 2, "1" * 30 + "d", "٢h"])
def test_an_error_names_place_value_and_examples(text: object) -> None:
    with pytest.raises(SpecError) as caught:
        parse_period(text, "t.json", "task.bucketTimePeriod")
    message = str(caught.value)
    assert message.startswith("t.json: task.bucketTimePeriod: ") and repr(text) in message and "'2h'" in message


@pytest.mark.parametrize(
    ("millis", "text"),
    [(86_400_000, "1d"), (21_600_000, "6h"), (129_600_000, "1d12h"), (2_592_000_000, "30d"), (0, "0s"), (1, "1ms"),
     (93_784_005, "1d2h3m4s5ms")],
)  # fmt: skip
def test_periods_are_written_as_they_are_read(millis: int, text: str) -> None:
    assert period_text(millis) == text and parse_period(text, "f", "p") == millis
