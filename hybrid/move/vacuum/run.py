"""Vacuum: the data files and commits that no version within a half's revert window needs. Reasons: docs/adr/0017.

The sequence for each half, and what a death in between leaves (the next run does the rest):
  look at the folder and the log, no JVM     nothing done; most often there is nothing, and Spark is not started
  take the half's lock, and give it back     nothing done: no act is under way any more that began long ago
  Delta's VACUUM                             some files are gone that nothing reads
  take the lock, clean the log               see `hybrid.lake.cleanup`
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half, TableSpec
from hybrid.errors import DataError
from hybrid.lake.cleanup import Expired, expired_log, remove_expired
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.lake.retention_window import FILES, Unneeded, retention_window_of, unneeded_files
from hybrid.move.vacuum.report import Removed, VacuumReport, report_of
from hybrid.runtime.json_values import utc

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HOUR_MS, _DAY_MS = 3_600_000, 86_400_000
# What other tools write into a half without our locks is a part of it sooner than this.
FLOOR_MS = _HOUR_MS


def run_vacuum(bench: CommitContext, spec: TableSpec, layout: TableLayout, *, dry_run: bool = False) -> VacuumReport:
    """Removes what is past the revert window of each half: files, then commits of the log.

    ConflictError when a half is busy for longer than the lock's timeout: what was removed before stays removed.
    """
    halves = [half for half in (Half.OFFLINE, Half.REALTIME) if half in spec.halves]
    found = [_Half(bench, spec, layout, half, dry_run).run() for half in halves]
    return report_of(spec.name, found, dry_run=dry_run)


class _Half:
    def __init__(self, bench: CommitContext, spec: TableSpec, layout: TableLayout, half: Half, dry_run: bool) -> None:
        self._bench, self._spec, self._layout = bench, spec, layout
        self._half, self._dry_run = half, dry_run
        self._now_ms = bench.now_ms()

    def run(self) -> Removed:
        base = open_half(self._layout.half(self._half))
        try:
            window, files = retention_window_of(base), unneeded_files(base)
        except DataError as error:
            return Removed(self._half, kept=(f"nothing goes: {str(error).rstrip('.')}",))
        if window.files_ms < FLOOR_MS:
            why = f"nothing goes: its property {FILES} is shorter than an hour, in which files may yet be committed"
            return Removed(self._half, kept=(why,))
        kept: list[str] = []
        if files and not self._dry_run:
            files = self._vacuumed(base, files)
        if not files:
            kept.append(f"no data file was left alone since before {utc(self._now_ms - window.files_ms)}")
        # By whole days, as Delta's own clean-up: what was planned on a version may take a while to be committed.
        before_ms = (self._now_ms - window.log_ms) // _DAY_MS * _DAY_MS
        log = expired_log(base, before_ms)
        if log.commits and not self._dry_run:
            try:
                self._clean(base, log)
            except DataError as error:  # the other half's is cleaned all the same
                kept.append(f"its log was not cleaned: {str(error).rstrip('.')}")
                return Removed(self._half, len(files), sum(one.bytes for one in files), kept=tuple(kept))
        if not log.commits:
            kept.append(f"of its log from before {utc(before_ms)} nothing goes: {log.why}")
        return Removed(self._half, len(files), sum(one.bytes for one in files), log.commits, log.bytes, tuple(kept))

    def _vacuumed(self, base: HalfSnapshot, files: list[Unneeded]) -> list[Unneeded]:
        """Lets Delta remove them; those that it has removed."""
        self._bench.progress.say(f"Removing data files of {self._half} of '{self._spec.name}' that no version needs.")
        with self._bench.lock(self._layout, self._half):
            pass  # whoever had it laid files that may be older than the window; whoever comes lays younger ones
        vacuum(self._bench.spark, base.path)
        return [one for one in files if not one.path.exists()]

    def _clean(self, base: HalfSnapshot, log: Expired) -> None:
        self._bench.progress.say(f"Cleaning the log of {self._half} of '{self._spec.name}'.")
        with self._bench.lock(self._layout, self._half, with_spark=False):
            remove_expired(base, log)


def vacuum(spark: SparkSession, half: Path) -> None:
    """Delta's own VACUUM of a half, by the window in its properties."""
    session = spark.newSession()  # settings of ours are nobody else's
    # Its two commits would say in the log what the run says, and have acts plan anew that go by what others committed.
    session.conf.set("spark.databricks.delta.vacuum.logging.enabled", "false")
    # Else it lists the folder by ten thousand tasks.
    tasks = 4 * spark.sparkContext.defaultParallelism
    session.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", str(tasks))
    path = str(half.absolute()).replace("`", "``")
    session.sql(f"VACUUM delta.`{path}` FULL")
