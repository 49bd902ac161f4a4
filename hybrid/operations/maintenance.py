"""Upkeep of a table: retention, merge, compaction, optimize and vacuum.

Each is a task with a type (`hybrid.operations.tasks`), recorded as a run unless it is a dry run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hybrid.config.compaction_json import COMPACTION_TASK
from hybrid.config.merge_json import MERGE_TASK
from hybrid.config.retention_json import RETENTION_TASK
from hybrid.config.table_config import TableSpec
from hybrid.config.task_schedules import OPTIMIZE_TASK, VACUUM_TASK
from hybrid.operations.clock_guard import require_clock
from hybrid.operations.ingestion import catch_up

if TYPE_CHECKING:
    from hybrid.home.home import Home
    from hybrid.home.table_ref import TableRef
    from hybrid.move.merging.report import MergeReport
    from hybrid.move.optimize import OptimizeReport
    from hybrid.move.retention.report import RetentionReport
    from hybrid.move.vacuum.report import VacuumReport


class Upkeep:
    """The upkeep of one table."""

    def __init__(self, home: Home, table: TableRef) -> None:
        self._home, self._table = home, table
        self._spec, self._layout = table.spec, table.layout

    def drop_expired(self, *, dry_run: bool = False) -> RetentionReport:
        """Drops the segments that are older than their half keeps rows; see `hybrid.move.retention.run`."""
        from hybrid.move.retention.run import require_retention, run_retention

        if dry_run:
            return run_retention(self._home.bench, self._spec, self._layout, dry_run=True)
        require_retention(self._spec)
        with self._home.recorded(self._spec.name, RETENTION_TASK) as run:
            require_clock(self._home, f"Retention of '{self._spec.name}'")
            if self._spec.upsert is not None:  # an older version of a key in Kafka counts, too
                catch_up(self._home, self._table)
            report = run_retention(self._home.bench, self._spec, self._layout, share_max=self._home.share_max)
            run.ended(report.sentence, did_something=report.committed)
        return report

    def merge_segments(self, *, dry_run: bool = False) -> MergeReport:
        """Merges the small segments of closed buckets of OFFLINE; see `hybrid.move.merging.run`."""
        from hybrid.move.merging.run import require_merges, run_merges

        if dry_run:
            return run_merges(self._home.bench, self._spec, self._layout, dry_run=True)
        require_merges(self._spec)
        with self._home.recorded(self._spec.name, MERGE_TASK) as run:
            report = run_merges(self._home.bench, self._spec, self._layout, newest=self._newest)
            run.ended(report.sentence, did_something=report.committed)
        return report

    def compact(self, *, dry_run: bool = False) -> MergeReport:
        """Leaves superseded rows out of the segments of OFFLINE; see `hybrid.move.compaction`."""
        from hybrid.move.compaction import require_compaction, run_compaction

        if dry_run:
            return run_compaction(self._home.bench, self._spec, self._layout, dry_run=True)
        require_compaction(self._spec)
        with self._home.recorded(self._spec.name, COMPACTION_TASK) as run:
            has_ttl = self._spec.upsert is not None and self._spec.upsert.deleted_keys_ttl > 0
            if has_ttl:
                require_clock(self._home, f"Compaction of '{self._spec.name}'")
            # An older version in Kafka keeps a delete marker. If Kafka cannot be read, markers are kept as well.
            warnings = catch_up(self._home, self._table) if has_ttl else []
            report = run_compaction(
                self._home.bench, self._spec, self._layout, newest=self._newest, keeps_markers=bool(warnings)
            )
            run.ended(report.sentence, did_something=report.committed)
        return report

    def optimize(self, *, dry_run: bool = False) -> OptimizeReport:
        """Rewrites the many small files of sealed realtime segments as few; see `hybrid.move.optimize`."""
        from hybrid.move.optimize import run_optimize

        if dry_run:
            return run_optimize(self._home.bench, self._spec, self._layout, dry_run=True)
        with self._home.recorded(self._spec.name, OPTIMIZE_TASK) as run:
            run_id = self._home.act_id("optimize")
            report = run_optimize(self._home.bench, self._spec, self._layout, run_id=run_id)
            run.ended(report.sentence, did_something=bool(report.versions))
        return report

    def vacuum(self, *, dry_run: bool = False) -> VacuumReport:
        """Removes the data files and log entries that no version within the revert window needs."""
        from hybrid.move.vacuum.run import run_vacuum

        if dry_run:
            return run_vacuum(self._home.bench, self._spec, self._layout, dry_run=True)
        with self._home.recorded(self._spec.name, VACUUM_TASK) as run:
            require_clock(self._home, f"Vacuum of '{self._spec.name}'")
            report = run_vacuum(self._home.bench, self._spec, self._layout)
            run.ended(report.sentence, did_something=report.removed)
        return report

    def _newest(self) -> TableSpec:
        """The table's current definition: columns may be added while an operation is planned."""
        return self._home.spec(self._spec.name)
