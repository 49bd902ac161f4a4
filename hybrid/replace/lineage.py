"""Lineage: replacements, merges and reverts, read from the OFFLINE half's log without a JVM.

Every such commit holds its entry in the operation's detail. The newest state points to the newest entry, and every
entry to the one before it. So a list reads one log entry per replacement, whatever the number of moves between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half
from hybrid.errors import NotFoundError
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import HalfSnapshot, lineage_acts, open_half
from hybrid.runtime.sentence_repr import shown_as
from hybrid.table.lineage import Lineage

if TYPE_CHECKING:
    from hybrid.replace.diff import Difference
    from hybrid.table.plans import Counts


class EntryState(StrEnum):
    """REVERTED when an active revert has taken the entry back; else ACTIVE."""

    ACTIVE = "ACTIVE"
    REVERTED = "REVERTED"


def lineage_of(
    base: HalfSnapshot,
    names: tuple[tuple[str, ...], tuple[str, ...]],
    found: Difference | Counts,
    result: str,
    **more: object,
) -> Lineage:
    """The entry of a swap on `base`; `names` are the old and the new segments.

    It points to the newest entry of `base`. `more` are the entry's own fields.
    """
    return Lineage(
        segments_from=names[0],
        segments_to=names[1],
        version_before=base.version,
        rows_before=found.rows_before,
        rows_after=found.rows_after,
        added=found.added,
        removed=found.removed,
        changed=found.changed,
        result=result,
        previous=base.offline.last_lineage,
        **more,  # type: ignore[arg-type]
    )


@shown_as("{0.id}: {0.kind}, {0.state}")
@dataclass(frozen=True)
class ReplacementEntry:
    """A committed replacement (`kind` replace), `backfill` or `revert`; `version` is its commit's Delta version."""

    id: str
    kind: str
    created_at: str
    version: int
    state: EntryState
    lineage: Lineage

    @property
    def result(self) -> str:
        """The sentence that says what it did."""
        return self.lineage.result

    @property
    def reason(self) -> str | None:
        """The reason that its author gave."""
        return self.lineage.reason

    def to_json(self) -> dict[str, object]:
        """One flat object, as lists and `show` print it."""
        lineage = self.lineage.to_json()
        del lineage["previous"]
        head = {"id": self.id, "kind": self.kind, "created_at": self.created_at, "state": self.state.value}
        return {**head, "version": self.version, **lineage}


def list_replacements(layout: TableLayout) -> list[ReplacementEntry]:
    """Every replacement and revert that the log still holds, newest first. Needs no JVM."""
    path = layout.half(Half.OFFLINE)
    return entries_of(open_half(path))


def show_replacement(layout: TableLayout, entry_id: str) -> ReplacementEntry:
    """One entry by its id. NotFoundError when there is none."""
    return find_entry(list_replacements(layout), entry_id)


def find_entry(entries: list[ReplacementEntry], entry_id: str) -> ReplacementEntry:
    """The entry of that id; NotFoundError names a similar one."""
    for entry in entries:
        if entry.id == entry_id:
            return entry
    raise NotFoundError.named("Replacement", entry_id, [entry.id for entry in entries])


def _takes_back(revert: Lineage, entry_id: str, entry: Lineage) -> bool:
    """Whether a later revert takes an entry back: by its id, or as one of the entries of its backfill."""
    if revert.reverts == entry_id:
        return True
    if entry.backfill is None or revert.reverts != entry.backfill:
        return False
    return set(entry.segments_to) <= set(revert.segments_from) and set(entry.segments_from) <= set(revert.segments_to)


def entries_of(half: HalfSnapshot) -> list[ReplacementEntry]:
    """Entries up to this version, newest first, with the states that later entries give them."""
    entries: list[ReplacementEntry] = []
    reverts: list[Lineage] = []  # the active ones
    for version, act in lineage_acts(half):
        lineage = Lineage.from_json(act.detail)
        is_taken_back = any(_takes_back(revert, act.id, lineage) for revert in reverts)
        state = EntryState.REVERTED if is_taken_back else EntryState.ACTIVE
        if lineage.reverts and state is EntryState.ACTIVE:
            reverts.append(lineage)
        entries.append(ReplacementEntry(act.id, act.kind, act.at, version, state, lineage))
    return entries
