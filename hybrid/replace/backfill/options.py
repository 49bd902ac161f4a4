"""`BackfillOptions`: how a backfill runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BackfillOptions:
    """The options of a run: all in one commit, newest buckets first, maximum rows per second, number of tasks."""

    atomic: bool = False
    newest_first: bool = False
    rows_per_second: float | None = None
    max_parallel: int | None = None
    reason: str | None = None
    user: str | None = None
