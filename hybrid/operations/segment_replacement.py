"""Replacements in several requests, as the API has them: Pinot's segment replacement protocol.

Started, they wait for jobs that write the segments they name; ended, all of it is visible at once, and none before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hybrid.lake import pushes
from hybrid.lake.pushes import OpenReplacement, PushState

if TYPE_CHECKING:
    from hybrid.home.home import Home
    from hybrid.home.table_ref import TableRef
    from hybrid.replace.pending import PendingReplacement
    from hybrid.replace.report import JobReport

REPLACE, REVERT = "replace", "revert"  # types of runs


class Replacing:
    """Those of one table."""

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
        """Opens a replacement of some OFFLINE segments by new ones; either list may be empty.

        From now on jobs that write one of `segments_to` stage it. Errors as for `open_replacement`.
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
        """Swaps in what was pushed, in one commit whose lineage entry bears the id; done already, it does nothing.

        With `segments_to` only these of those that it waits for come. NotFoundError for an id that was not started;
        ConflictError when one has not been pushed or what it replaces has changed: nothing was changed.
        """
        from hybrid.replace.ending import end_replacement

        table, found = self._table, self.find(entry)
        with self._home.recorded(table.name, REPLACE) as run:
            report = end_replacement(
                self._home.bench, table.spec, table.layout, found, segments_to=segments_to, user=user
            )
            run.ended(report.sentence, did_something=report.committed)
        return report

    def take_back(self, entry: str, *, force: bool = False) -> str:
        """Throws away what was pushed to one that has not ended; a sentence. ConflictError without `force`.

        One that has ended is taken back as any replacement: `Table.revert`.
        """
        from hybrid.replace.opening import closed, take_back

        found = self.find(entry)
        state = pushes.state_of(self._table.layout, found.id)
        if state is not PushState.IN_PROGRESS:
            raise closed(found, state)
        take_back(self._table.layout, found, force)
        return f"Reverted '{found.id}': what was pushed to it is gone. Nothing of it was visible."

    def throw_away(self, entry: str, *, dry_run: bool = False, reason: str | None = None) -> JobReport:
        """As `take_back` with `force`, told as a revert is; `dry_run` only says what would go.

        There is no lineage entry to keep `reason` with, and the report warns of that.
        """
        from hybrid.replace.diff import Difference
        from hybrid.replace.opening import closed
        from hybrid.replace.pending import waiting_of
        from hybrid.replace.report import report_of

        found = waiting_of(self._table.layout, self.find(entry))
        if found.state is not PushState.IN_PROGRESS:
            raise closed(found.entry, found.state)
        if dry_run:
            sentence = f"Would throw away what waits for '{entry}': {found.pushed_words}. Nothing was touched."
        else:
            with self._home.recorded(self._table.name, REVERT) as run:
                self.take_back(entry, force=True)
                gone = ", and is gone. Nothing of it was visible." if found.pushed else " to it."
                sentence = f"Reverted '{entry}': {found.pushed_words}{gone}"
                run.ended(sentence, did_something=True)
        warnings = ("The reason is not kept: what was never visible has no lineage entry.",) if reason else ()
        told: dict[str, object] = {"dry_run": dry_run, "warnings": warnings}
        return report_of(self._table.name, ((), ()), Difference(0, 0), sentence, **told)

    def waiting(self, entry: str) -> PendingReplacement | None:
        """How one stands that was started and has no commit, also one taken back; None for any other id."""
        from hybrid.replace.pending import waiting_of

        found = pushes.find_replacement(self._table.layout, entry)
        if found is None or self.state(entry) is PushState.COMPLETED:
            return None
        return waiting_of(self._table.layout, found)

    def in_progress(self) -> list[PendingReplacement]:
        """Those that have not ended, newest first."""
        from hybrid.replace.pending import waiting_of

        layout = self._table.layout
        return [waiting_of(layout, entry) for entry in reversed(pushes.in_progress(layout))]

    def find(self, entry: str) -> OpenReplacement:
        """One that was started, however it ended; NotFoundError, with a suggestion, when none has that id."""
        return pushes.known_replacement(self._table.layout, entry)

    def state(self, entry: str) -> PushState | None:
        """How one stands; None when none with that id was started."""
        found = pushes.find_replacement(self._table.layout, entry)
        return None if found is None else pushes.state_of(self._table.layout, found.id)

    def started(self) -> list[tuple[OpenReplacement, PushState]]:
        """All that were started, oldest first, with how they stand."""
        layout = self._table.layout
        return [(entry, pushes.state_of(layout, entry.id)) for entry in pushes.open_replacements(layout)]
