"""What every kind of change contributes to a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from hybrid.replace.check_result import CheckResult
from hybrid.table.plans import Counts, hang_together

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


# Replaces the segment in `pairs` when buckets depend on each other for another reason. No segment name begins so.
SHARED = "~"


@dataclass(frozen=True)
class Correction:
    """A change that was computed on a base and is not staged yet.

    `counts` are by start of bucket, for all buckets with rows before or after. `pairs` are the touched (bucket,
    segment), new segments included; `new` names these. `rows` gives the new rows of touched segments, stored columns
    only. `needs_sort` is set when they are not in the order of a segment's file yet. `checks` are the results of
    expectations on the incoming rows. `lost_rows` are the numbers of rows that touched segments lose, where they are
    known.
    """

    counts: Mapping[int, Counts]
    pairs: Sequence[tuple[int, str]]
    rows: Callable[[], DataFrame]
    needs_sort: bool
    samples: Mapping[int, Sequence[Mapping[str, object]]] = field(default_factory=dict)
    new: frozenset[str] = frozenset()
    checks: Sequence[CheckResult] = ()
    warnings: Sequence[str] = ()
    lost_rows: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def groups(self) -> list[tuple[tuple[int, ...], tuple[str, ...]]]:
        """The buckets and segments of each unit."""
        return hang_together(self.pairs)
