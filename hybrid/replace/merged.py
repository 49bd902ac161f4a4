"""Segments that were merged into others: what became of a name that no longer exists."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from hybrid.errors import ConflictError
from hybrid.lake.log import HalfSnapshot
from hybrid.replace.lineage import EntryState, ReplacementEntry, entries_of
from hybrid.replace.report import shown
from hybrid.table.lineage import MERGE


def merges_since(half: HalfSnapshot, name: str) -> list[ReplacementEntry]:
    """The merges that replaced a segment and its successors, newest first.

    Empty when it exists, when another operation removed it, or when none of its successors exists.
    """
    existing = {file.segment for file in half.files}
    return [] if name in existing else _merges_since(existing, entries_of(half), name)


def refuse_merged(table: str, half: HalfSnapshot, names: Iterable[str]) -> None:
    """ConflictError when a segment to replace was merged with others: its rows are among theirs."""
    existing = {file.segment for file in half.files}
    gone = [name for name in names if name not in existing]
    entries = entries_of(half) if gone else []
    for name in gone:
        merges = _merges_since(existing, entries, name)
        if merges:
            raise ConflictError(
                f"Segment '{name}' was merged into {shown(merges[0].lineage.segments_to)} by '{merges[0].id}' at "
                f"{merges[0].created_at}: its rows are among others there. Nothing was changed.",
                hint=f"Bring it back, then run the job again: hybrid replacement revert {table} {merges[0].id}. Or "
                "correct all of those times: --covers FROM/TO, hybrid backfill plan",
            )


def _merges_since(held: Collection[str], entries: Sequence[ReplacementEntry], name: str) -> list[ReplacementEntry]:
    """`merges_since` for a segment that does not exist. `entries` are all entries, newest first."""
    merges: list[ReplacementEntry] = []
    names = {name}
    for entry in reversed(entries):
        if entry.state is not EntryState.ACTIVE:
            continue
        if name in entry.lineage.segments_to:  # it was written again
            merges, names = [], {name}
        elif not names.isdisjoint(entry.lineage.segments_from):
            merges = [entry, *merges] if entry.kind == MERGE else []
            names = set(entry.lineage.segments_to)
    return merges if merges and not names.isdisjoint(held) else []
