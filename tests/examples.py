"""How many examples a property test tries: all in `make test`, a part of them in `make unit`.

Tests of a seed each, such as the lives of tables, take a second for one: `HYBRID_SEEDS=10 make test` tries ten times as
many.
"""

from __future__ import annotations

import os

from hypothesis import settings

# Hypothesis tries as many unless it is told otherwise; the profile of `make unit` has fewer.
ALL = 100
UNIT = 8


def examples(count: int) -> int:
    """`count`, or in `make unit` the part of it by which its profile is smaller."""
    return max(1, count * settings.default.max_examples // ALL)


def seeds(first: int, count: int) -> range:
    """`count` seeds from `first` on, or as many times more as the environment's `HYBRID_SEEDS` says."""
    return range(first, first + count * int(os.environ.get("HYBRID_SEEDS", "1")))
