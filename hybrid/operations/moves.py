"""The realtime-to-offline move of a table, recorded as a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hybrid.config.upsert_json import MOVE_TASK

if TYPE_CHECKING:
    from hybrid.home.home import Home
    from hybrid.home.table_ref import TableRef
    from hybrid.move.move import MoveReport


def move(home: Home, table: TableRef, *, max_buckets: int | None = 1, dry_run: bool = False) -> MoveReport:
    """Move the next closed buckets that hold rows (None: all) and every late row to the offline half."""
    from hybrid.move.move import run_move
    from hybrid.move.plan import Reach

    if dry_run:
        return run_move(home.bench, table.spec, table.layout, reach=Reach(max_buckets), dry_run=True)
    with home.recorded(table.name, MOVE_TASK) as run:
        report = run_move(
            home.bench,
            table.spec,
            table.layout,
            reach=Reach(max_buckets),
            act_id=home.act_id("move"),
            newest=lambda: home.spec(table.name),
        )
        run.ended(report.sentence, did_something=report.moved)
    return report
