"""Reverts of replacements, recorded as runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hybrid.operations.backfills import Backfills
from hybrid.operations.segment_replacement import REVERT, Replacing

if TYPE_CHECKING:
    from hybrid.home.home import Home
    from hybrid.home.table_ref import TableRef
    from hybrid.replace.report import JobReport


def revert_replacement(
    home: Home, table: TableRef, replacement: str, *, dry_run: bool = False, **options: Any
) -> JobReport:
    """Bring back what a replacement replaced, as a new commit.

    A replacement in several requests that has not ended is discarded with the segments that were pushed to it.
    """
    from hybrid.replace.revert import revert

    replacing = Replacing(home, table)
    if replacing.waiting(replacement) is not None:
        return replacing.throw_away(replacement, dry_run=dry_run, reason=options.get("reason"))
    if dry_run:
        return revert(home.bench, table.spec, table.layout, replacement, dry_run=True, **options)
    with home.recorded(table.name, REVERT) as run, Backfills(home).reverting(table, replacement):
        act_id = home.act_id("revert")
        report = revert(home.bench, table.spec, table.layout, replacement, act_id=act_id, **options)
        run.ended(report.sentence, did_something=report.committed)
    return report
