"""Guards reverts after full refreshes of flows: rows that a refresh has reloaded must not become visible twice.

A flow's rows hold its name and the number of its refresh; the OFFLINE half records each flow's newest refresh. Rows of
a replacement hold neither, so the lineage is followed to the rows that they replaced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hybrid.errors import ConflictError
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.half_frames import refused_when_gone, rows_in
from hybrid.lake.layout import quoted
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.replace.lineage import ReplacementEntry
from hybrid.table import columns
from hybrid.table.lineage import MERGE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def refreshes_of(half: HalfSnapshot) -> dict[str, int]:
    """The number of the newest full refresh of each flow that was refreshed."""
    return {
        name: int(progress["refresh"]) for name, progress in half.offline.progress.items() if progress.get("refresh")
    }


def refuse_refreshed(
    bench: CommitContext,
    base: HalfSnapshot,
    entry: ReplacementEntry,
    entries: Sequence[ReplacementEntry],
    restored: DataFrame,
) -> None:
    """ConflictError when `restored`, which a revert of `entry` would restore, holds rows from before a full refresh.

    `entries` are all entries, newest first.
    """
    refreshes = refreshes_of(base)
    if not refreshes:
        return
    stale = _stale(restored, refreshes)
    names = set(entry.lineage.segments_from)
    for older in entries[entries.index(entry) + 1 :]:
        came, went = set(older.lineage.segments_to), set(older.lineage.segments_from)
        if stale or older.kind == MERGE or not names & came or not went:  # merged rows keep their flow's name
            continue
        # Same names correspond. A removed segment that was not written again may be anywhere in the new ones.
        sources = (names & came & went) | (went - came)
        names |= sources
        stale = _stale_then(bench, base, older, sources, refreshes)
    if stale:
        flows = ", ".join(f"flow '{name}'" for name in stale)
        raise ConflictError(
            f"'{entry.id}' cannot be reverted: a full refresh of {flows} has taken those rows away since and loaded "
            "them anew: they would be there twice. Nothing was changed.",
            hint="Correct what the refresh has loaded: hybrid job run",
        )


def _stale_then(
    bench: CommitContext, base: HalfSnapshot, older: ReplacementEntry, segments: set[str], refreshes: Mapping[str, int]
) -> list[str]:
    """`_stale` on segments as of before an older entry. ConflictError when that version is no longer retained."""
    refusal = ConflictError(
        f"What '{older.id}' replaced is not kept any more, and flows of this table were refreshed: nobody can tell "
        "whether the rows would be there twice. Nothing was changed.",
        hint="Correct what the table holds: hybrid job run",
    )
    with refused_when_gone(refusal):
        return _stale(rows_in(bench, open_half(base.path, older.lineage.version_before), segments), refreshes)


def _stale(rows: DataFrame, refreshes: Mapping[str, int]) -> list[str]:
    """Flows that have rows older than their refresh."""
    connector, epoch = quoted(columns.CONNECTOR), quoted(columns.EPOCH)
    of_flows = rows.where(connector.isin(sorted(refreshes))).select(connector, epoch).distinct().collect()
    return sorted({row[0] for row in of_flows if row[1] < refreshes[row[0]]})
