"""`Creation`: what creating or changing a table did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Creation:
    """What creating or applying did: `changes` by document path, offsets to start from, warnings, one sentence."""

    table: str
    changes: Sequence[str]
    starts: Mapping[str, int]
    warnings: Sequence[str]
    sentence: str
