"""Replacements in several requests without a commit, in the form of lineage entries. Needs no JVM."""

from __future__ import annotations

from dataclasses import dataclass

from hybrid.lake import pushes
from hybrid.lake.layout import TableLayout
from hybrid.lake.pushes import OpenReplacement, PushedSegment, PushState
from hybrid.progress import counted
from hybrid.replace.report import shown
from hybrid.runtime.sentence_repr import shown_as_sentence
from hybrid.table.lineage import Lineage


@shown_as_sentence
@dataclass(frozen=True)
class PendingReplacement:
    """The state of a replacement without a commit: its pushed segments, and its staged bytes on disk."""

    entry: OpenReplacement
    state: PushState
    pushed: tuple[PushedSegment, ...]
    bytes: int

    @property
    def missing(self) -> tuple[str, ...]:
        """The segments that have not been pushed."""
        there = {segment.name for segment in self.pushed}
        return tuple(name for name in self.entry.segments_to if name not in there)

    @property
    def rows(self) -> int:
        """The rows that were pushed, without delete markers."""
        return sum(segment.rows for segment in self.pushed)

    @property
    def pushed_words(self) -> str:
        """A phrase for what was pushed."""
        if not self.pushed:
            return "nothing was pushed"
        names = shown(tuple(segment.name for segment in self.pushed))
        return f"{names} with {counted(self.rows, 'row')} ({self.bytes} bytes) was pushed"

    @property
    def sentence(self) -> str:
        """Its state as a sentence."""
        if self.state is not PushState.IN_PROGRESS:
            return "Taken back before its end: nothing of it was visible."
        waits = f"Waits for {shown(self.missing)}" if self.missing else "Waits for its end"
        return f"{waits}; {self.pushed_words}, which no query shows."

    def to_json(self) -> dict[str, object]:
        """One flat object with the keys of an entry. Values that only its commit decides are null."""
        entry = self.entry
        names = (tuple(entry.segments_from), entry.segments_to)
        counts = (0, 0, self.rows, 0, 0, 0)
        lineage = Lineage(*names, *counts, self.sentence, reason=entry.reason, user=entry.user).to_json()
        del lineage["previous"]
        undecided = dict.fromkeys(("version_before", "rows_before", "added", "removed", "changed"))
        head = {"id": entry.id, "kind": "replace", "created_at": entry.created_at, "state": self.state.value}
        return {**head, "version": None, **lineage, **undecided}


def waiting_of(layout: TableLayout, entry: OpenReplacement) -> PendingReplacement:
    """The state of a replacement that has no commit."""
    pushed = tuple(segment for _, segment in pushes.pushed(layout, entry.id).values())
    return PendingReplacement(entry, pushes.state_of(layout, entry.id), pushed, pushes.staged_bytes(layout, entry.id))
