"""New OFFLINE segments from rows: one for each time bucket, named by its first and last time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hybrid.config.table_config import MoveConfig, TableSpec
from hybrid.lake.layout import quoted
from hybrid.lake.log import HalfSnapshot, segments_in_lineage
from hybrid.lake.table_context import TableContext
from hybrid.table import columns
from hybrid.table.names import exact_time, offline_segment

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_BUCKET, _SPLIT = "_hy_bucket", "_hy_split"
_NAMED_BUCKET, _NAMED_SPLIT = "_hy_named_bucket", "_hy_named_split"


@dataclass(frozen=True)
class SegmentLayout:
    """`rows` with their bucket and split number; `times` has (bucket, split number, first time, last time) by segment.

    The times are in the form that segment names use.
    """

    rows: DataFrame
    times: tuple[tuple[int | None, int, object, object], ...]


def segment_layout_of(spec: TableSpec, rows: DataFrame, split: Column) -> SegmentLayout:
    """Assigns rows to segments by time bucket and number of `split`. It reads the rows, so call it before any lock."""
    from pyspark.sql import functions as F

    time, length = quoted(columns.TIME), (spec.move or MoveConfig()).bucket_ms
    parted = (
        rows.drop(columns.SEGMENT).withColumn(_BUCKET, time - F.pmod(time, F.lit(length))).withColumn(_SPLIT, split)
    )
    stored = quoted(spec.time_column or columns.TIME)
    ends = (F.min(columns.TIME), F.max(columns.TIME), F.min(stored), F.max(stored))
    bounds = sorted(parted.groupBy(_BUCKET, _SPLIT).agg(*ends).collect(), key=lambda row: (row[0] or 0, row[1]))
    times = (
        (bucket, number, exact_time(spec, low, first), exact_time(spec, high, last))
        for bucket, number, low, high, first, last in map(tuple, bounds)
    )
    return SegmentLayout(parted, tuple(times))


def named_segments(table: TableContext, half: HalfSnapshot, laying: SegmentLayout) -> tuple[DataFrame, list[str]]:
    """The rows with the name of a new segment in SEGMENT, and the names. Call it under the half's lock.

    It avoids names in the half and names that a replacement removed, because reverting that would meet our rows there.
    """
    from pyspark.sql import functions as F

    taken = {file.segment for file in half.files} | segments_in_lineage(half)
    pairs: list[tuple[int | None, int, str]] = []
    for bucket, part, low, high in laying.times:
        name = offline_segment(table.name, low, high, taken)
        taken.add(name)
        pairs.append((bucket, part, name))
    if len(pairs) == 1:  # it is that of all rows: a join takes longer than to write few of them
        return laying.rows.withColumn(columns.SEGMENT, F.lit(pairs[0][2])), [pairs[0][2]]
    ddl = f"{_NAMED_BUCKET} bigint, {_NAMED_SPLIT} int, {columns.SEGMENT} string"
    names = F.broadcast(table.bench.spark.createDataFrame(pairs, ddl))
    same = F.col(_BUCKET).eqNullSafe(F.col(_NAMED_BUCKET)) & (F.col(_SPLIT) == F.col(_NAMED_SPLIT))
    return laying.rows.join(names, same), [pair[2] for pair in pairs]
