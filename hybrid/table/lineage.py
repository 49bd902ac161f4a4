"""A lineage entry: which segments of OFFLINE a commit replaced by which others. It is the detail of the commit's act.

Replacements, backfills' swaps, reverts and merges of segments have one. The newest state points to the newest entry,
and every entry to its predecessor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hybrid.table.state import Act, LineagePointer, OfflineState

# Kinds of entries, and types of the runs that made them. A merge's commit only regroups rows into other segments.
REPLACE, REVERT, MERGE = "replace", "revert", "merge"


@dataclass(frozen=True)
class Lineage:
    """The lineage of a commit that replaces or adds segments.

    `version_before` is the Delta version that holds the replaced rows.

    `inputs` holds path, size in bytes and sha256 of each file read. `reverts` is the id of the reverted entry or
    backfill. `expectations` are the results, as `CheckResult.to_json` has them. For a swap, `backfill` is its plan,
    `buckets` are the corrected ones ([start, end) in epoch ms), and `change` is the request in words. `seconds` is how
    long the commit took.
    """

    segments_from: tuple[str, ...]
    segments_to: tuple[str, ...]
    version_before: int
    rows_before: int
    rows_after: int
    added: int
    removed: int
    changed: int
    result: str
    reason: str | None = None
    user: str | None = None
    source: str | None = None
    inputs: tuple[Mapping[str, object], ...] = ()
    reverts: str | None = None
    previous: LineagePointer | None = None
    expectations: tuple[Mapping[str, object], ...] = ()
    backfill: str | None = None
    buckets: tuple[tuple[int | None, int | None], ...] = ()
    change: str | None = None
    seconds: float | None = None

    def to_json(self) -> dict[str, object]:
        """The JSON form in the detail of an act."""
        return {**vars(self), "previous": vars(self.previous) if self.previous else None}

    @classmethod
    def from_json(cls, doc: Mapping[str, Any]) -> Lineage:
        """The inverse of `to_json`."""
        # Entries of earlier versions have no keys for expectations and backfills.
        names = ("segments_from", "segments_to", "inputs", "expectations")
        lists = {name: tuple(doc.get(name, ())) for name in names}
        lists["buckets"] = tuple((start, end) for start, end in doc.get("buckets", ()))
        previous = LineagePointer(**doc["previous"]) if doc["previous"] else None
        return cls(**{**doc, **lists, "previous": previous})


def with_entry(state: OfflineState, act: Act, version: int) -> OfflineState:
    """The state after a commit on top of `version` whose detail is a lineage entry."""
    return replace(state, act=act, last_lineage=LineagePointer(act.id, version + 1))
