"""JSON texts of values that files and other tables hold and JSON has no type for."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from hybrid.schema.jsontext import compact


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("a b", "a b"), (7, "7"), (1.5, "1.5"), (True, "true"), (Decimal("1.10"), "1.10"), (b"\x00\xff", "00ff"),
        (date(2026, 1, 2), "2026-01-02"), (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
        ('"', '\\"'),
    ],
)  # fmt: skip
def test_a_key_of_a_map_is_written_as_the_same_value_would_be(key: object, text: str) -> None:
    assert compact({key: 1}) == f'{{"{text}":1}}'
