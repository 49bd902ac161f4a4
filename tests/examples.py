"""How many examples a property test tries: all in `make test`, a part of them in `make unit`."""

from __future__ import annotations

from hypothesis import settings

# Hypothesis tries as many unless it is told otherwise; the profile of `make unit` has fewer.
ALL = 100
UNIT = 15


def examples(count: int) -> int:
    """`count`, or in `make unit` the part of it by which its profile is smaller."""
    return max(1, count * settings.default.max_examples // ALL)
