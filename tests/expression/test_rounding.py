"""ROUND with a small step: users of SQL mean decimals, Pinot a step."""

from __future__ import annotations

import pytest

from hybrid.expression.parse import notes_of


@pytest.mark.parametrize(
    ("text", "notes"),
    [
        ("round(x, 2)",
         ("ROUND(x, 2) rounds to a multiple of 2, as in Pinot. ROUND_DECIMAL(x, 2) rounds to 2 decimals.",)),
        ("a = Round(b * 1.19, 1), c = round(d, 1)",
         ("ROUND(b * 1.19, 1) rounds to a multiple of 1, as in Pinot. ROUND_DECIMAL(b * 1.19, 1) rounds to 1 decimal.",
          "ROUND(d, 1) rounds to a multiple of 1, as in Pinot. ROUND_DECIMAL(d, 1) rounds to 1 decimal.")),
        ("round(x, 7)", ()), ("round(ts, 300000)", ()), ("round(x, y)", ()), ("round(x, 0.5)", ()),
        ("round_decimal(x, 2)", ()), ("roundDecimal(x)", ()), ("'round(x, 2)'", ()), ("round(x", ()),
    ],
)  # fmt: skip
def test_a_small_step_is_named_with_the_function_of_decimals(text: str, notes: tuple[str, ...]) -> None:
    assert notes_of(text) == notes
