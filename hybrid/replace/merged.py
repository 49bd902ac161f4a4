"""Segments that were merged into others: a job that names one brings it back first, as an act of its own (a revert).

So a job that runs every day under the same names goes on to work, and replaces nothing but what it names.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hybrid.errors import ConflictError
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.lake.workbench import Workbench
from hybrid.replace.lineage import EntryState, ReplacementEntry, entries_of
from hybrid.replace.report import shown
from hybrid.replace.revert import revert
from hybrid.spec.table_config import Half, TableSpec
from hybrid.table.lineage import MERGE


def merges_since(half: HalfSnapshot, name: str) -> list[ReplacementEntry]:
    """The merges that took a segment away and what it became, newest first; none when it is there.

    Also none when it was replaced since: then nothing is left of it to bring back.
    """
    if any(file.segment == name for file in half.files):
        return []
    found: list[ReplacementEntry] = []
    names = {name}
    for entry in reversed(entries_of(half)):
        if entry.state is not EntryState.ACTIVE or names.isdisjoint(entry.lineage.segments_from):
            continue
        if entry.kind != MERGE:
            return []
        found.insert(0, entry)
        names = set(entry.lineage.segments_to)
    return found


def undo_merges(
    bench: Workbench, spec: TableSpec, layout: TableLayout, wanted: Collection[str], source: str, *, dry_run: bool
) -> None:
    """Reverts the merges that took `wanted` segments away. `source` is the job that replaces them.

    ConflictError in a dry run, which changes nothing and so cannot compare; and when a merge cannot be reverted.
    """
    for name in wanted:
        merges = merges_since(open_half(layout.half(Half.OFFLINE)), name)
        if merges and dry_run:
            raise ConflictError(
                f"Segment '{name}' was merged into {_into(merges)} by '{merges[0].id}'. A run reverts that first; "
                "before it there is nothing to compare with. Nothing was touched.",
                hint=f"hybrid replacement revert {spec.name} {merges[0].id}",
            )
        for entry in merges:
            bench.progress.say(f"Reverting '{entry.id}', which merged '{name}' into {_into([entry])}.")
            revert(bench, spec, layout, entry.id, reason=f"{source} replaces segment '{name}'")


def _into(merges: Sequence[ReplacementEntry]) -> str:
    return shown(merges[0].lineage.segments_to)
