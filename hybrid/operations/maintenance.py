"""Upkeep of a table: retention, merge, compaction, optimize and vacuum.

Each is a task with a type (`hybrid.operations.tasks`), recorded as a run unless it is a dry run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hybrid.config.compaction_json import COMPACTION_TASK
from hybrid.config.merge_json import MERGE_TASK
from hybrid.config.retention_json import RETENTION_TASK, require_retention
from hybrid.config.table_config import TableSpec
from hybrid.config.task_schedules import OPTIMIZE_TASK, VACUUM_TASK
from hybrid.operations.clock_guard import require_clock
from hybrid.operations.idle_tasks import after_merge, after_optimize
from hybrid.operations.ingestion import catch_up
from hybrid.runtime.sentence_repr import shown_as

if TYPE_CHECKING:
    from hybrid.home.home import Home
    from hybrid.home.table_ref import TableRef
    from hybrid.lake.table_context import TableContext
    from hybrid.move.merging.report import MergeReport
    from hybrid.move.optimize import OptimizeReport
    from hybrid.move.retention.report import RetentionReport
    from hybrid.move.vacuum.report import VacuumReport


@shown_as("{0._table.name}")
class Upkeep:
    """The upkeep of one table."""

    def __init__(self, home: Home, table: TableRef) -> None:
        self._home, self._table = home, table
        self._spec = table.spec

    def drop_expired(self, *, dry_run: bool = False) -> RetentionReport:
        """Drops the segments that are older than their half keeps rows; see `hybrid.move.retention.run`."""
        from hybrid.move.retention.run import run_retention

        def work() -> RetentionReport:
            if not dry_run:
                require_clock(self._home, f"Retention of '{self._spec.name}'")
            warnings = list[str]()
            if not dry_run and self._spec.upsert is not None:  # an older version of a key in Kafka counts, too
                warnings = catch_up(self._home, self._table)
            report = run_retention(self._context, dry_run=dry_run, share_max=self._home.share_max)
            return replace(report, sentence=" ".join([report.sentence, *warnings]))

        require_retention(self._spec)
        return self._home.run_recorded(self._spec.name, RETENTION_TASK, work, dry_run=dry_run)

    def merge_segments(self, *, dry_run: bool = False) -> MergeReport:
        """Merges the small segments of closed buckets of OFFLINE; see `hybrid.move.merging.run`."""
        from hybrid.move.merging.run import require_merges, run_merges

        def work() -> MergeReport:
            report = run_merges(self._context, dry_run=dry_run, newest=self._newest)
            return after_merge(self._table, report)

        require_merges(self._spec)
        return self._home.run_recorded(self._spec.name, MERGE_TASK, work, dry_run=dry_run)

    def compact(self, *, dry_run: bool = False) -> MergeReport:
        """Leaves superseded rows out of the segments of OFFLINE; see `hybrid.move.compaction`."""
        from hybrid.move.compaction import require_compaction, run_compaction

        def work() -> MergeReport:
            warnings = list[str]()
            if not dry_run and self._spec.upsert is not None and self._spec.upsert.deleted_keys_ttl > 0:
                require_clock(self._home, f"Compaction of '{self._spec.name}'")
                # An older version in Kafka keeps a delete marker. If Kafka cannot be read, markers are kept as well.
                warnings = catch_up(self._home, self._table)
            report = run_compaction(self._context, dry_run=dry_run, keeps_markers=bool(warnings), newest=self._newest)
            report = after_merge(self._table, report)
            return replace(report, sentence=" ".join([report.sentence, *warnings]))

        require_compaction(self._spec)
        return self._home.run_recorded(self._spec.name, COMPACTION_TASK, work, dry_run=dry_run)

    def optimize(self, *, dry_run: bool = False) -> OptimizeReport:
        """Rewrites the many small files of sealed realtime segments as few; see `hybrid.move.optimize`."""
        from hybrid.move.optimize import run_optimize

        def work() -> OptimizeReport:
            report = run_optimize(self._context, dry_run=dry_run, run_id=self._home.act_id("optimize"))
            return after_optimize(self._table, report)

        return self._home.run_recorded(self._spec.name, OPTIMIZE_TASK, work, dry_run=dry_run)

    def vacuum(self, *, dry_run: bool = False) -> VacuumReport:
        """Removes the data files and log entries that no version within the revert window needs."""
        from hybrid.move.vacuum.run import run_vacuum

        def work() -> VacuumReport:
            if not dry_run:
                require_clock(self._home, f"Vacuum of '{self._spec.name}'")
            return run_vacuum(self._context, dry_run=dry_run)

        return self._home.run_recorded(self._spec.name, VACUUM_TASK, work, dry_run=dry_run)

    @property
    def _context(self) -> TableContext:
        return self._home.table_context(self._table)

    def _newest(self) -> TableSpec:
        """The table's current definition: columns may be added while an operation is planned."""
        return self._home.spec(self._spec.name)
