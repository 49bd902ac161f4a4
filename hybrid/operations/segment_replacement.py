"""Replacements in several requests: Pinot's segment replacement protocol.

A started replacement waits for jobs that write its segments. Ending it makes all of them visible at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hybrid.lake import pushes
from hybrid.lake.pushes import OpenReplacement, PushState
from hybrid.runtime.sentence_repr import shown_as
from hybrid.table.lineage import REPLACE, REVERT

if TYPE_CHECKING:
    from hybrid.home.home import Home
    from hybrid.home.table_ref import TableRef
    from hybrid.replace.pending import PendingReplacement
    from hybrid.replace.report import JobReport


@shown_as("{0._table.name}")
class Replacing:
    """The replacements in several requests of one table."""

    def __init__(self, home: Home, table: TableRef) -> None:
        self._home, self._table = home, table

    def start(
        self,
        segments_from: Sequence[str],
        segments_to: Sequence[str],
        *,
        force_cleanup: bool = False,
        notes: Mapping[str, str] | None = None,
        user: str | None = None,
    ) -> OpenReplacement:
        """Starts a replacement of OFFLINE segments by new ones; either list may be empty.

        From now on jobs that write one of `segments_to` stage it. Errors are those of `open_replacement`.
        """
        from hybrid.replace.opening import open_replacement

        return open_replacement(
            self._table.spec,
            self._table.layout,
            (segments_from, segments_to),
            created_at=self._home.bench.now_iso(),
            force_cleanup=force_cleanup,
            notes=notes,
            user=user,
        )

    def end(self, entry: str, segments_to: Sequence[str] = (), *, user: str | None = None) -> JobReport:
        """Swaps in the pushed segments, in one commit whose lineage entry has the id. If done already, it does nothing.

        `segments_to` restricts it to these of the expected segments. NotFoundError for an id that was not started.
        ConflictError when a segment was not pushed or what is replaced has changed; nothing is changed then.
        """
        from hybrid.replace.ending import end_replacement

        table, replacement = self._table, self.find(entry)

        def work() -> JobReport:
            return end_replacement(self._home.table_context(table), replacement, segments_to=segments_to, user=user)

        return self._home.run_recorded(table.name, REPLACE, work)

    def take_back(self, entry: str, *, force: bool = False) -> str:
        """Discards what was pushed to a replacement in progress; returns a sentence. Errors as for `opening.take_back`.

        A replacement that has ended is reverted by `Table.revert`.
        """
        from hybrid.replace.opening import closed, take_back

        replacement = self.find(entry)
        state = pushes.state_of(self._table.layout, replacement.id)
        if state is not PushState.IN_PROGRESS:
            raise closed(replacement, state)
        take_back(self._table.layout, replacement, force)
        return f"Reverted '{replacement.id}': what was pushed to it is gone. Nothing of it was visible."

    def throw_away(self, entry: str, *, dry_run: bool = False, reason: str | None = None) -> JobReport:
        """As `take_back` with `force`, but with the report of a revert; `dry_run` only says what would be discarded.

        The report warns that `reason` is not kept, because there is no lineage entry.
        """
        from hybrid.replace.diff import Difference
        from hybrid.replace.opening import closed
        from hybrid.replace.pending import waiting_of
        from hybrid.replace.report import report_of

        pending = waiting_of(self._table.layout, self.find(entry))
        if pending.state is not PushState.IN_PROGRESS:
            raise closed(pending.entry, pending.state)
        if dry_run:
            sentence = f"Would throw away what waits for '{entry}': {pending.pushed_words}. Nothing was touched."
        else:
            with self._home.recorded(self._table.name, REVERT) as run:
                self.take_back(entry, force=True)
                gone = ", and is gone. Nothing of it was visible." if pending.pushed else " to it."
                sentence = f"Reverted '{entry}': {pending.pushed_words}{gone}"
                run.ended(sentence, did_something=True)
        warnings = ("The reason is not kept: what was never visible has no lineage entry.",) if reason else ()
        fields: dict[str, object] = {"dry_run": dry_run, "warnings": warnings}
        return report_of(self._table.name, ((), ()), Difference(0, 0), sentence, **fields)

    def waiting(self, entry: str) -> PendingReplacement | None:
        """A replacement that was started and has no commit, also a discarded one; None for any other id."""
        from hybrid.replace.pending import waiting_of

        replacement = pushes.find_replacement(self._table.layout, entry)
        if replacement is None or self.state(entry) is PushState.COMPLETED:
            return None
        return waiting_of(self._table.layout, replacement)

    def in_progress(self) -> list[PendingReplacement]:
        """The replacements in progress, newest first."""
        from hybrid.replace.pending import waiting_of

        layout = self._table.layout
        return [waiting_of(layout, entry) for entry in reversed(pushes.in_progress(layout))]

    def find(self, entry: str) -> OpenReplacement:
        """A replacement that was started, however it ended; NotFoundError, with a suggestion, for an unknown id."""
        return pushes.known_replacement(self._table.layout, entry)

    def state(self, entry: str) -> PushState | None:
        """The state of a replacement; None when none with that id was started."""
        replacement = pushes.find_replacement(self._table.layout, entry)
        return None if replacement is None else pushes.state_of(self._table.layout, replacement.id)

    def started(self) -> list[tuple[OpenReplacement, PushState]]:
        """All replacements that were started, oldest first, with their states."""
        layout = self._table.layout
        return [(entry, pushes.state_of(layout, entry.id)) for entry in pushes.open_replacements(layout)]
