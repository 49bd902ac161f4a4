"""Segments that were merged into others: what a name that is not there any more has become."""

from __future__ import annotations

from collections.abc import Iterable

from hybrid.errors import ConflictError
from hybrid.lake.log import HalfSnapshot
from hybrid.replace.lineage import EntryState, ReplacementEntry, entries_of
from hybrid.replace.report import shown
from hybrid.table.lineage import MERGE


def merges_since(half: HalfSnapshot, name: str) -> list[ReplacementEntry]:
    """The merges that took a segment away and what it became, newest first.

    None when it is there, when something else took it away, or when nothing is left of what it became.
    """
    held = {file.segment for file in half.files}
    if name in held:
        return []
    found: list[ReplacementEntry] = []
    names = {name}
    for entry in reversed(entries_of(half)):
        if entry.state is not EntryState.ACTIVE:
            continue
        if name in entry.lineage.segments_to:  # it came again
            found, names = [], {name}
        elif not names.isdisjoint(entry.lineage.segments_from):
            found = [entry, *found] if entry.kind == MERGE else []
            names = set(entry.lineage.segments_to)
    return found if found and not held.isdisjoint(names) else []


def refuse_merged(table: str, half: HalfSnapshot, names: Iterable[str]) -> None:
    """ConflictError when a segment that is to be replaced was merged with others: its rows are among theirs."""
    for name in names:
        merges = merges_since(half, name)
        if merges:
            raise ConflictError(
                f"Segment '{name}' was merged into {shown(merges[0].lineage.segments_to)} by '{merges[0].id}' at "
                f"{merges[0].created_at}: its rows are among others there. Nothing was changed.",
                hint=f"Bring it back, then run the job again: hybrid replacement revert {table} {merges[0].id}. Or "
                "correct all of those times: --covers FROM/TO, hybrid backfill plan",
            )
