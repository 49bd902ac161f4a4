"""A lineage entry: which segments of OFFLINE an act has put in place of which others. It stands in the act's detail.

Replacements, backfills' swaps, reverts and merges of segments have one. The newest state points to the newest entry,
and every entry to the one before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hybrid.table.state import Act, LineagePointer, OfflineState

MERGE = "merge"  # the kind of entries that put the same rows into other segments


@dataclass(frozen=True)
class Lineage:
    """What is written down with an act that puts segments in place of others, or adds them.

    `version_before` is the Delta version the replaced rows are read from.

    `inputs` holds path, size in bytes and sha256 of each file read; `reverts` the id of the entry taken back, or of the
    backfill; `expectations` what came of each, as `CheckResult.to_json` says it. `backfill` is the plan that the swap
    is a part of, `buckets` what it corrects ([start, end) in epoch ms), `change` what was asked for; `seconds` what the
    commit took.
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
        """JSON as it stands in the act's detail."""
        return {**vars(self), "previous": vars(self.previous) if self.previous else None}

    @classmethod
    def from_json(cls, doc: Mapping[str, Any]) -> Lineage:
        """The inverse of `to_json`."""
        # Entries from before there were expectations or backfills have no such keys.
        names = ("segments_from", "segments_to", "inputs", "expectations")
        lists = {name: tuple(doc.get(name, ())) for name in names}
        lists["buckets"] = tuple((start, end) for start, end in doc.get("buckets", ()))
        previous = LineagePointer(**doc["previous"]) if doc["previous"] else None
        return cls(**{**doc, **lists, "previous": previous})


def with_entry(state: OfflineState, act: Act, version: int) -> OfflineState:
    """The state after an act whose detail is an entry, committed on top of `version`."""
    return replace(state, act=act, last_lineage=LineagePointer(act.id, version + 1))
