"""The realtime-to-offline move of a table, recorded as a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hybrid.config.upsert_json import MOVE_TASK
from hybrid.operations.idle_tasks import after_move

if TYPE_CHECKING:
    from hybrid.home.home import Home
    from hybrid.home.table_ref import TableRef
    from hybrid.move.move import MoveReport


def move(home: Home, table: TableRef, *, max_buckets: int | None = 1, dry_run: bool = False) -> MoveReport:
    """Move the next closed buckets that hold rows (None: all) and every late row to the offline half."""
    from hybrid.move.move import run_move
    from hybrid.move.plan import Reach

    def work() -> MoveReport:
        report = run_move(
            home.table_context(table),
            reach=Reach(max_buckets),
            dry_run=dry_run,
            act_id=home.act_id("move"),
            newest=lambda: home.spec(table.name),
        )
        return after_move(home, table, report)

    return home.run_recorded(table.name, MOVE_TASK, work, dry_run=dry_run)
