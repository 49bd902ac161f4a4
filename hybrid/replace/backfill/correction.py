"""What every kind of change gives to a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from hybrid.replace.check_result import CheckResult
from hybrid.table.plans import Counts, hang_together

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


# Stands for a segment in `pairs` where buckets hang together by something else; no segment's name begins so.
SHARED = "~"


@dataclass(frozen=True)
class Correction:
    """A change worked out on a base, not staged yet.

    `counts` are by the start of the bucket, of all buckets that hold rows before or after. `pairs` say which (bucket,
    segment) are touched, new segments among them; `new` names the latter. `rows` gives the rows of touched segments as
    they will be, stored columns only; `needs_sort` when they are not in the order of a segment's file yet. `checks` are
    the results of expectations on the rows that it brings.
    """

    counts: Mapping[int, Counts]
    pairs: Sequence[tuple[int, str]]
    rows: Callable[[], DataFrame]
    needs_sort: bool
    samples: Mapping[int, Sequence[Mapping[str, object]]] = field(default_factory=dict)
    new: frozenset[str] = frozenset()
    checks: Sequence[CheckResult] = ()
    warnings: Sequence[str] = ()

    @cached_property
    def groups(self) -> list[tuple[tuple[int, ...], tuple[str, ...]]]:
        """The buckets and segments of each unit."""
        return hang_together(self.pairs)
