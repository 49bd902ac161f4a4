"""`Erasure`: the deleted rows that a purge removes for good."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Erasure:
    """The request of a purge: the deleted rows that match `where`, in Pinot's SQL.

    `undecided` also removes rejected messages for which the condition cannot be evaluated.
    """

    where: str
    undecided: bool = False
    dry_run: bool = False
    reason: str | None = None
    user: str | None = None
