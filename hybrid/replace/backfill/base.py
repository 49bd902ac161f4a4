"""The rows that a backfill is planned on: OFFLINE at one version, each row with its bucket and whether it is live."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half, TableSpec
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.defaults import with_defaults
from hybrid.lake.half_frames import rows_in, stored_rows
from hybrid.lake.layout import physical_columns, quoted
from hybrid.lake.lineage_archive import kept_acts
from hybrid.lake.log import HalfSnapshot
from hybrid.lake.log_entries import DataFile, own_states
from hybrid.lake.spark_upsert_order import best, key_struct
from hybrid.lake.staged_frames import stage_frame
from hybrid.lake.waiting_files import waiting_files
from hybrid.replace.diff import order_of
from hybrid.table import columns
from hybrid.table.boundary import Boundary
from hybrid.table.correction_window import CorrectionWindow
from hybrid.table.coverage_sql import visible_offline_sql, visible_realtime_sql
from hybrid.table.effective import EffectiveBoundary

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Columns beside the stored ones: the start of the row's bucket, and whether queries show the row. BUCKET is null
# outside the window, and 0 on a table without a time column.
BUCKET, LIVE = "_hy_bucket", "_hy_live"
KEY, ORDER = "_hy_key", "_hy_order"
WHOLE = 0


@dataclass(frozen=True)
class Base:
    """A table at the version that a backfill is planned on. `folder` holds intermediate staged files."""

    bench: CommitContext
    spec: TableSpec
    offline: HalfSnapshot
    realtime: HalfSnapshot | None
    window: CorrectionWindow | None
    folder: Path

    @cached_property
    def candidates(self) -> tuple[str, ...]:
        """Segments that may hold rows of the window, by the files' statistics."""
        return tuple(dict.fromkeys(file.segment for file in self.offline.files if self._reaches(file)))

    def stored(self) -> DataFrame:
        """All rows of the half. A column that was added after a row has its default, as queries show it."""
        return self._with_defaults(stored_rows(self.bench, self.offline))

    def in_segments(self, segments: Sequence[str]) -> DataFrame:
        """The rows of some segments, as `stored` has them."""
        return self._with_defaults(rows_in(self.bench, self.offline, segments))

    def _with_defaults(self, frame: DataFrame) -> DataFrame:
        return frame.withColumns(with_defaults(self.spec)) if self._has_grown else frame

    def shown(self) -> DataFrame:
        """The rows of the half that the boundary makes visible."""
        return self.stored().where(visible_offline_sql(self._effective))

    @cached_property
    def _has_grown(self) -> bool:
        logged = (state.act for _, state in own_states(self.offline.path, self.offline.version))
        archived = (act for _, act in kept_acts(self.offline.path, self.offline.table_id))
        return any(act.kind == "evolve" for act in chain(logged, archived))

    def rows(self, segments: Sequence[str] | None = None) -> DataFrame:
        """The stored rows of some segments (None: the candidates), with BUCKET, and LIVE where keys have one winner."""
        frame = self.in_segments(self.candidates if segments is None else segments)
        stored_columns = [quoted(name) for name, _ in physical_columns(self.spec, Half.OFFLINE)]
        return self.with_live(self.with_bucket(frame.select(*stored_columns)))

    def with_bucket(self, frame: DataFrame) -> DataFrame:
        """Adds BUCKET."""
        from pyspark.sql import functions as F

        sql = f"{WHOLE}L" if self.window is None else self.window.bucket_sql(columns.TIME)
        return frame.withColumn(BUCKET, F.expr(sql).cast("bigint"))

    def with_live(self, frame: DataFrame) -> DataFrame:
        """Where keys have one winner, adds LIVE: whether a row or delete marker wins its key over the whole table."""
        from pyspark.sql import functions as F

        if not self.spec.picks_winners:
            return frame
        keyed = frame.withColumn(KEY, key_struct(self.spec))
        won = self.winners.select(quoted(KEY).alias("_hy_won_key"), ORDER)
        joined = keyed.join(won, keyed[KEY] == F.col("_hy_won_key"), "left")
        return joined.withColumn(LIVE, self.order.eqNullSafe(F.col(ORDER))).drop(KEY, "_hy_won_key", ORDER)

    @property
    def order(self) -> Column:
        """The value by which a version of a key wins."""
        return order_of(self.spec)

    @cached_property
    def winners(self) -> DataFrame:
        """(KEY, ORDER): the winner among all visible versions of each key with a row in the window. Staged once."""
        from pyspark.sql import functions as F

        of_window = self.with_bucket(self.in_segments(self.candidates))
        keys = of_window.where(f"{BUCKET} IS NOT NULL").select(key_struct(self.spec).alias(KEY)).distinct()
        shown = self.shown().select(key_struct(self.spec).alias(KEY), self._ordered)
        versions = self.elsewhere().unionByName(shown)
        of_key = versions.join(keys, KEY, "left_semi").groupBy(KEY)
        won = of_key.agg(best(self.spec, F.col(ORDER)).alias(ORDER))
        return stage_frame(self.bench, won, self.folder / "winners")

    def elsewhere(self) -> DataFrame:
        """(KEY, ORDER) of the REALTIME rows that the boundary makes visible."""
        rows = self.unmoved()  # first: columns need a session
        return rows.select(key_struct(self.spec).alias(KEY), self._ordered)

    def unmoved(self) -> DataFrame:
        """The REALTIME rows that the boundary makes visible."""
        if self.realtime is None:
            return self.stored().limit(0)
        rows = stored_rows(self.bench, self.realtime).where(columns.rows_sql(self.spec.name))
        return rows.where(visible_realtime_sql(self._effective))

    @property
    def _effective(self) -> EffectiveBoundary:
        return self.offline.effective_boundary(self.spec.boundary_lag_ms)

    @property
    def _ordered(self) -> Column:
        return self.order.alias(ORDER)

    def _reaches(self, file: DataFile) -> bool:
        return self.window is None or file.may_reach(self.window.start, self.window.end)


def unmoved(
    bench: CommitContext,
    spec: TableSpec,
    halves: tuple[HalfSnapshot, HalfSnapshot | None],
    window: CorrectionWindow | None,
) -> int:
    """The number of rows of the window that the REALTIME half shows because no move has taken them."""
    offline, realtime = halves
    if realtime is None:
        return 0
    effective = offline.effective_boundary(spec.boundary_lag_ms)
    committed = {} if effective.time_alone else realtime.realtime.offsets
    table_files = [file for file in realtime.files if file.segment not in columns.bookkeeping(spec.name)]
    visible = waiting_files(table_files, Boundary(effective.limit_ms, effective.frontier), committed)
    files = [file for file in visible if window is None or file.may_reach(window.start, window.end)]
    if not files:
        return 0
    rows = stored_rows(bench, realtime, files).where(columns.rows_sql(spec.name))
    rows = rows.where(visible_realtime_sql(effective))
    if window is not None:
        rows = rows.where(f"{columns.TIME} >= {window.start} AND {columns.TIME} < {window.end}")
    return rows.count()


def stored_times(
    bench: CommitContext, spec: TableSpec, halves: tuple[HalfSnapshot, HalfSnapshot | None]
) -> tuple[int, int] | None:
    """The first and last time of the table's rows in both halves, epoch ms; None without rows.

    The log has them for most files; where a file lacks them, rows are read.
    """
    from pyspark.sql import functions as F

    apart = columns.bookkeeping(spec.name)
    times: list[tuple[int, int]] = []
    for half in (snapshot for snapshot in halves if snapshot is not None):
        files = [file for file in half.files if file.segment not in apart]
        times += [file.times for file in files if file.times is not None]
        unknown = [file for file in files if file.times is None]
        if unknown:
            rows = stored_rows(bench, half, unknown)
            first, last = rows.agg(F.min(columns.TIME), F.max(columns.TIME)).collect()[0]
            times += [(first, last)] if first is not None else []
    return (min(first for first, _ in times), max(last for _, last in times)) if times else None
