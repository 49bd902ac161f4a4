"""How far a delete marker must be behind the highest comparison value."""

from decimal import Decimal

from hybrid.move.expired_markers import below


def test_every_digit_of_the_highest_value_counts() -> None:
    assert below(Decimal("12345678901234567890.123456789012345678"), 1) == Decimal(
        "12345678901234567889.123456789012345678"
    )
    assert below(9_223_372_036_854_775_807, 0.5) == 9_223_372_036_854_775_807
    assert below(10, 2.5) == 8 and below(10.0, 2.5) == 7.5
    assert below(Decimal(5), 1e-45) < 5
