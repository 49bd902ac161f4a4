"""Numbers of bytes as people read them."""

from __future__ import annotations

import pytest

from hybrid.runtime.byte_sizes import size_text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (848, "848 B"), (999, "999 B"), (2848, "2.8 kB"), (9960, "10 kB"), (28480, "28 kB"),
     (999_600, "1.0 MB"),
     (14_240_106, "14 MB"), (3 * 10**18, "3000 PB")],
)  # fmt: skip
def test_sizes(count: int, text: str) -> None:
    assert size_text(count) == text
