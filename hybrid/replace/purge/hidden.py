"""Which rows of the current versions a purge removes: matching rows that no query shows.

    a REALTIME row that the boundary hides               removed; no boundary may be set below its time any more
    on an upsert table: a row below its key's winner     removed
    a delete marker of a key without other rows          removed
    any other row                                        a query shows it, or it keeps an older version hidden

Markers are removed only for conditions on the primary key. Then all versions of a key match or none does, so no old
version can become visible again. OFFLINE rows that a boundary hides are shown when it moves, so they count as shown.

Decisions are made on pinned versions, and carried out while only ingestion has added to them since. Ingestion can only
make the winner of a key newer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half
from hybrid.lake.exact_decimals import with_exact_decimals
from hybrid.lake.half_frames import rows_in, stored_rows
from hybrid.lake.layout import quoted
from hybrid.lake.log import HalfSnapshot
from hybrid.lake.spark_upsert_order import beats, best, key_struct
from hybrid.replace.diff import order_of
from hybrid.replace.purge.request import PurgeScope
from hybrid.replace.purge.scan import CONDEMNED, with_condemned
from hybrid.table import columns
from hybrid.table.coverage_sql import visible_offline_sql, visible_realtime_sql
from hybrid.table.effective import EffectiveBoundary

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Whether a row is removed, and whether the boundary hides it.
GOES, HIDDEN = "_hy_goes", "_hy_hidden"
_KEY, _ORDER, _TOP, _REST = "_hy_key", "_hy_order", "_hy_top", "_hy_rest"
_MATCH, _MARKER, _SHOWN = "_hy_match", "_hy_marker", "_hy_shown"
_HALF = "_hy_half"


@dataclass(frozen=True)
class HiddenSegment:
    """A segment of a current version with matching rows.

    It counts rows to remove, rows that queries show, and delete markers that older versions need.
    """

    half: Half
    name: str
    goes: int
    shown: int
    markers: int


class Hidden:
    """What a purge removes from a table at these versions.

    `raws` are the digests of rejected messages to remove; `folder` holds intermediate staged files.
    """

    def __init__(
        self, scene: PurgeScope, halves: Mapping[Half, HalfSnapshot], raws: DataFrame | None, folder: Path
    ) -> None:
        self._scene, self._halves, self._raws, self._folder = scene, halves, raws, folder

    def segments(self, matching: Mapping[Half, Sequence[str]]) -> list[HiddenSegment]:
        """The decisions for the rows of these segments, which are all segments with matching rows."""
        from pyspark.sql import functions as F

        parts = []
        for half, names in matching.items():
            if names:
                stored = rows_in(self._scene.table.bench, self._halves[half], names)
                rows = self.decided(half, stored).where(F.col(_MATCH) | F.col(GOES))
                parts.append(rows.select(F.lit(half.value).alias(_HALF), columns.SEGMENT, GOES, _MARKER))
        if not parts:
            return []
        found = reduce(lambda rows, more: rows.unionByName(more), parts)
        stays, marker = ~F.col(GOES), F.col(_MARKER)
        counted = (F.count_if(GOES), F.count_if(stays & ~marker), F.count_if(stays & marker))
        counts = sorted(found.groupBy(_HALF, columns.SEGMENT).agg(*counted).collect())
        return [HiddenSegment(half, *row[1:]) for half in matching for row in counts if row[0] == half.value]

    def decided(self, half: Half, rows: DataFrame) -> DataFrame:
        """Stored rows of a half, of these or later versions, with GOES, HIDDEN and whether they match."""
        from pyspark.sql import functions as F

        is_hidden = F.lit(False) if half is Half.OFFLINE else ~F.expr(visible_realtime_sql(self._effective))
        rows, hidden = self._matched(rows).withColumn(HIDDEN, is_hidden), F.col(HIDDEN)
        if self._scene.table.spec.upsert is None:
            decided = rows.withColumn(GOES, F.col(_MATCH) & (hidden | self._takes_shown(half)))
        else:
            keyed = rows.withColumn(_KEY, key_struct(self._scene.table.spec))
            of_key = self._winners.withColumnRenamed(_KEY, "_hy_of_key")
            joined = keyed.join(of_key, keyed[_KEY].eqNullSafe(F.col("_hy_of_key")), "left")
            # Where rows are combined (`spec.folds`), none is superseded: each of them counts.
            beaten = F.coalesce(beats(self._scene.table.spec, F.col(_TOP), self._order), F.lit(False))
            beaten = beaten & F.lit(self._scene.table.spec.picks_winners)
            alone = F.col(_MARKER) & F.coalesce(F.col(_REST) == 0, F.lit(False)) & self._takes_markers
            taken = self._takes_shown(half) & ~F.col(_MARKER)
            decided = joined.withColumn(GOES, F.col(_MATCH) & (hidden | beaten | alone | taken))
        return self._with_rejected(decided) if half is Half.REALTIME else decided

    def _takes_shown(self, half: Half) -> Column:
        """Whether rows that queries show go too: where the condition names whole keys, no older version is left."""
        from pyspark.sql import functions as F

        return F.lit(self._scene.asked.takes_realtime and half is Half.REALTIME)

    def _with_rejected(self, rows: DataFrame) -> DataFrame:
        """Decides on rejected rows by their messages alone."""
        from pyspark.sql import functions as F

        spec = self._scene.table.spec
        kept_apart = quoted(columns.SEGMENT).isin(list(columns.bookkeeping(spec.name)))
        goes = (quoted(columns.SEGMENT) == columns.rejected_segment(spec.name)) & F.col(CONDEMNED)
        rows = with_condemned(rows, self._raws)
        rows = rows.withColumn(GOES, F.when(kept_apart, goes).otherwise(F.col(GOES)))
        return rows.withColumn(_MATCH, F.when(kept_apart, F.col(GOES)).otherwise(F.col(_MATCH)))

    def _matched(self, rows: DataFrame) -> DataFrame:
        """Adds whether a row matches, and whether it is a delete marker. Values stay as stored."""
        from pyspark.sql import functions as F

        scene = self._scene
        marker = quoted(columns.OP).eqNullSafe(F.lit(columns.OP_DELETE))
        filled = scene.filled()
        originals = {f"_hy_kept_{name}": quoted(name) for name in filled}
        rows = rows.withColumns(originals).withColumns(filled)
        rows = with_exact_decimals(rows, lambda exact: exact.withColumn(_MATCH, scene.matches()))
        rows = rows.withColumn(_MARKER, marker)
        return rows.withColumns({name: F.col(f"`_hy_kept_{name}`") for name in filled})

    @cached_property
    def _winners(self) -> DataFrame:
        """(KEY, TOP, REST) for each key with a match: the order of its winner, and a number of stored versions.

        REST counts the versions that are not matching delete markers. Staged once.
        """
        from pyspark.sql import functions as F

        versions = reduce(lambda rows, more: rows.unionByName(more), map(self._versions, self._halves))
        keys = versions.where(_MATCH).select(_KEY)  # one may occur twice: what follows only asks for its presence
        going = F.col(_MATCH) & F.col(_MARKER)
        top = best(self._scene.table.spec, F.when(F.col(_SHOWN), F.col(_ORDER)))
        won = versions.join(keys, _KEY, "left_semi").groupBy(_KEY).agg(top.alias(_TOP), F.count_if(~going).alias(_REST))
        won.write.parquet(str(self._folder))
        return self._scene.table.bench.spark.read.schema(won.schema).parquet(str(self._folder))

    def _versions(self, half: Half) -> DataFrame:
        """All stored versions of a half, and whether the boundary shows them."""
        from pyspark.sql import functions as F

        rows = stored_rows(self._scene.table.bench, self._halves[half]).where(columns.rows_sql(self._scene.table.name))
        is_offline = half is Half.OFFLINE
        shown = visible_offline_sql(self._effective) if is_offline else visible_realtime_sql(self._effective)
        key, order = key_struct(self._scene.table.spec).alias(_KEY), self._order.alias(_ORDER)
        return self._matched(rows).select(key, order, _MATCH, _MARKER, F.expr(shown).alias(_SHOWN))

    @property
    def _takes_markers(self) -> Column:
        from pyspark.sql import functions as F

        request = self._scene.asked
        return F.lit(request.takes_markers and set(request.reads) <= set(self._scene.table.spec.primary_key))

    @property
    def _order(self) -> Column:
        return order_of(self._scene.table.spec)

    @cached_property
    def _effective(self) -> EffectiveBoundary:
        offline = self._halves.get(Half.OFFLINE)
        return offline.effective_boundary(self._scene.table.spec.boundary_lag_ms) if offline else EffectiveBoundary()
