"""Values of documents in messages."""

from __future__ import annotations

import math
from datetime import date

import pytest

from hybrid.schema.document import shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "'a'"),
        ("it's", '"it\'s"'),
        (True, "true"),
        (None, "null"),
        ({"a": ["b", 1.5, False]}, '{"a": ["b", 1.5, false]}'),
        ("ö", "'ö'"),
        (["ö"], '["ö"]'),
        (math.nan, "NaN"),
        ({date(2024, 1, 1): 5}, "{datetime.date(2024, 1, 1): 5}"),
        ([b"x"], "[b'x']"),
        (["\ud800"], '["\\ud800"]'),
        ("x" * 200, f"'{'x' * 96}..."),
        ([100] * 100, "[" + "100, " * 19 + "1..."),
    ],
)
def test_shown(value: object, text: str) -> None:
    """JSON where it has the value; whatever comes, a message can be written."""
    assert shown(value) == text and len(text) <= 100 and text.encode()


def test_a_value_that_holds_itself() -> None:
    endless: list[object] = []
    endless.append(endless)
    assert shown(endless) == "[[...]]"
