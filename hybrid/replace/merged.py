"""Segments that were merged into others: what a name that is not there any more has become."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

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
    return [] if name in held else _merges_since(held, entries_of(half), name)


def refuse_merged(table: str, half: HalfSnapshot, names: Iterable[str]) -> None:
    """ConflictError when a segment that is to be replaced was merged with others: its rows are among theirs."""
    held = {file.segment for file in half.files}
    gone = [name for name in names if name not in held]
    entries = entries_of(half) if gone else []
    for name in gone:
        merges = _merges_since(held, entries, name)
        if merges:
            raise ConflictError(
                f"Segment '{name}' was merged into {shown(merges[0].lineage.segments_to)} by '{merges[0].id}' at "
                f"{merges[0].created_at}: its rows are among others there. Nothing was changed.",
                hint=f"Bring it back, then run the job again: hybrid replacement revert {table} {merges[0].id}. Or "
                "correct all of those times: --covers FROM/TO, hybrid backfill plan",
            )


def _merges_since(held: Collection[str], entries: Sequence[ReplacementEntry], name: str) -> list[ReplacementEntry]:
    """`merges_since` of a segment that is not there. `entries` are all, newest first."""
    found: list[ReplacementEntry] = []
    names = {name}
    for entry in reversed(entries):
        if entry.state is not EntryState.ACTIVE:
            continue
        if name in entry.lineage.segments_to:  # it came again
            found, names = [], {name}
        elif not names.isdisjoint(entry.lineage.segments_from):
            found = [entry, *found] if entry.kind == MERGE else []
            names = set(entry.lineage.segments_to)
    return found if found and not names.isdisjoint(held) else []
