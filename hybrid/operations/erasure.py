"""`Erasure`: which deleted rows a purge is to remove for good."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Erasure:
    """What is to be purged: the deleted rows that match `where`, in Pinot's SQL.

    `undecided`: rejected messages go, too, of which cannot be told whether they match.
    """

    where: str
    undecided: bool = False
    dry_run: bool = False
    reason: str | None = None
    user: str | None = None
