"""`JobOptions`: how a replacement job runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class JobOptions:
    """The options of one run of a job.

    `dry_run` reports the difference and changes nothing. `append` allows a new segment beside others of the same
    times. `allow_empty` allows an input without rows. `reason` and `user` are recorded in the lineage entry. `expect`
    are further expectations, beside the table's and the job's, in the syntax of `--expect`.
    """

    dry_run: bool = False
    append: bool = False
    allow_empty: bool = False
    reason: str | None = None
    user: str | None = None
    expect: Sequence[str] = ()
