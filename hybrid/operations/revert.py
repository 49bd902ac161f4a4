"""Reverts of replacements, recorded as runs."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from hybrid.operations.backfills import Backfills
from hybrid.operations.segment_replacement import Replacing
from hybrid.table.lineage import REVERT

if TYPE_CHECKING:
    from hybrid.home.home import Home
    from hybrid.home.table_ref import TableRef
    from hybrid.replace.report import JobReport


def revert_replacement(
    home: Home,
    table: TableRef,
    replacement: str,
    *,
    dry_run: bool = False,
    reason: str | None = None,
    user: str | None = None,
) -> JobReport:
    """Bring back what a replacement replaced, as a new commit.

    A replacement in several requests that has not ended is discarded with the segments that were pushed to it.
    """
    from hybrid.replace.revert import revert

    replacing = Replacing(home, table)
    if replacing.waiting(replacement) is not None:
        return replacing.throw_away(replacement, dry_run=dry_run, reason=reason)

    def work() -> JobReport:
        with nullcontext() if dry_run else Backfills(home).reverting(table, replacement):
            return revert(
                home.table_context(table),
                replacement,
                dry_run=dry_run,
                reason=reason,
                user=user,
                act_id=home.act_id("revert"),
            )

    return home.run_recorded(table.name, REVERT, work, dry_run=dry_run)
