"""Vacuum: removes data files and commits that no version within a half's revert window needs. Reasons: docs/adr/0017.

The sequence for each half, and what a crash in between leaves (the next run does the rest):
  look at the folder and the log, no JVM     nothing done; usually there is nothing, and Spark is not started
  take the half's lock, and release it       nothing done: no operation that began long ago is still running
  Delta's VACUUM                             some files are gone that nothing reads
  take the lock, clean the log               see `hybrid.lake.cleanup`
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half
from hybrid.errors import DataError
from hybrid.lake.cleanup import Expired, expired_log, remove_expired
from hybrid.lake.log import HalfSnapshot
from hybrid.lake.retention_window import FILES, Unneeded, retention_window_of, unneeded_files
from hybrid.lake.table_context import TableContext
from hybrid.move.vacuum.report import Removed, VacuumReport, report_of
from hybrid.runtime.json_values import utc
from hybrid.store.mirror import mirror_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HOUR_MS, _DAY_MS = 3_600_000, 86_400_000
# Other tools commit files that they write into a half without our locks sooner than this.
FLOOR_MS = _HOUR_MS


def run_vacuum(table: TableContext, *, dry_run: bool = False) -> VacuumReport:
    """Remove what is past the revert window of each half: files, then commits of the log.

    Raises ConflictError when a half is busy for longer than the lock's timeout; earlier removals stay.
    """
    halves = [half for half in (Half.OFFLINE, Half.REALTIME) if half in table.spec.halves]
    removed = [_Half(table, half, dry_run).run() for half in halves]
    return report_of(table.name, removed, dry_run=dry_run)


class _Half:
    def __init__(self, table: TableContext, half: Half, dry_run: bool) -> None:
        self._table, self._half, self._dry_run = table, half, dry_run
        self._now_ms = table.bench.now_ms()

    def run(self) -> Removed:
        self._align()
        base = self._table.half(self._half)
        try:
            window, files = retention_window_of(base), unneeded_files(base)
        except DataError as error:
            return Removed(self._half, kept=(f"nothing goes: {str(error).rstrip('.')}",))
        if window.files_ms < FLOOR_MS:
            why = f"nothing goes: its property {FILES} is shorter than an hour, in which files may yet be committed"
            return Removed(self._half, kept=(why,))
        reasons: list[str] = []
        if files and not self._dry_run:
            files = self._vacuumed(base, files)
        reasons += self._clear_store(files, window.files_ms)
        if not files:
            reasons.append(f"no data file has been obsolete since before {utc(self._now_ms - window.files_ms)}")
        # By whole days, like Delta's own cleanup: what was planned on a version may take a while to commit.
        before_ms = (self._now_ms - window.log_ms) // _DAY_MS * _DAY_MS
        log = expired_log(base, before_ms)
        if log.commits and not self._dry_run:
            try:
                self._clean(base, log)
            except DataError as error:  # the other half's log is cleaned all the same
                reasons.append(f"its log was not cleaned: {str(error).rstrip('.')}")
                return Removed(self._half, len(files), sum(file.bytes for file in files), kept=tuple(reasons))
        if not log.commits:
            reasons.append(f"of its log from before {utc(before_ms)} nothing goes: {log.why}")
        return Removed(
            self._half, len(files), sum(file.bytes for file in files), log.commits, log.bytes, tuple(reasons)
        )

    def _vacuumed(self, base: HalfSnapshot, files: list[Unneeded]) -> list[Unneeded]:
        """Let Delta remove the files. Returns those that it removed."""
        self._table.bench.progress.say(
            f"Removing data files of {self._half} of '{self._table.name}' that no version needs."
        )
        with self._table.lock(self._half):
            pass  # the last holder's files may be older than the window; later holders write younger ones
        if self._table.bench.has_shared_files:
            vacuum(self._table.bench.spark, base.path)
        else:  # Delta's lists the folder in workers
            for file in files:
                file.path.unlink(missing_ok=True)
        return [file for file in files if not file.path.exists()]

    def _align(self) -> None:
        """Let the mirror of a store have all that the store has: what goes is told by the log."""
        mirror = mirror_at(self._table.layout.root)
        if mirror is not None and not self._dry_run:
            from hybrid.lake.store_log import align

            with self._table.lock(self._half, with_spark=False):
                align(mirror, self._table.layout.half(self._half))

    def _clear_store(self, removed: list[Unneeded], window_ms: int) -> list[str]:
        """Remove on the store what was removed here, and what no commit names. Why nothing goes, if nothing does."""
        mirror = mirror_at(self._table.layout.root)
        if mirror is None or self._dry_run:
            return []
        from hybrid.lake.store_log import align
        from hybrid.lake.store_vacuum import remove_from_store, require_files

        try:
            with self._table.lock(self._half, with_spark=False):
                align(mirror, self._table.layout.half(self._half))
                base = self._table.half(self._half)
                require_files(base)
                remove_from_store(mirror, base, [file.path for file in removed], window_ms)
        except DataError as error:
            return [f"nothing goes from the store: {str(error).rstrip('.')}"]
        return []

    def _clean(self, base: HalfSnapshot, log: Expired) -> None:
        self._table.bench.progress.say(f"Cleaning the log of {self._half} of '{self._table.name}'.")
        with self._table.lock(self._half, with_spark=False):
            remove_expired(base, log)


def vacuum(spark: SparkSession, half: Path) -> None:
    """Delta's own VACUUM of a half, by the window in its properties."""
    session = spark.newSession()  # a session of its own keeps our settings from others
    # Its two commits would repeat in the log what the run reports, and operations that depend on the log would plan
    # again.
    session.conf.set("spark.databricks.delta.vacuum.logging.enabled", "false")
    # Otherwise it lists the folder with ten thousand tasks.
    tasks = 4 * spark.sparkContext.defaultParallelism
    session.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", str(tasks))
    path = str(half.absolute()).replace("`", "``")
    session.sql(f"VACUUM delta.`{path}` FULL")
