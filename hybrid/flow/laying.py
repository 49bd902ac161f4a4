"""Rows of a once-flow as OFFLINE segments: a segment for each bucket of time, named by its first and last time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hybrid.flow.declared.frames import quoted
from hybrid.flow.declared.stage import laid_out
from hybrid.lake.log import HalfSnapshot, segments_in_lineage
from hybrid.lake.workbench import Workbench
from hybrid.spec.table_config import Half, MoveConfig, TableSpec
from hybrid.table import columns
from hybrid.table.names import offline_segment

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_BUCKET, _SPLIT = "_hy_bucket", "_hy_split"
_NAMED_BUCKET, _NAMED_SPLIT = "_hy_named_bucket", "_hy_named_split"


def lay_segments(
    bench: Workbench,
    spec: TableSpec,
    half: HalfSnapshot,
    rows: DataFrame,
    hidden: dict[str, Column | str | int | None],
) -> tuple[DataFrame, list[str]]:
    """The rows under the names of new segments, each segment in one sorted file; and the names.

    No name that the half has, nor one that a replacement took away: its revert would meet our rows there.
    """
    from pyspark.sql import functions as F

    config = spec.move or MoveConfig()
    time = quoted(columns.TIME)
    split = F.floor(F.col(columns.OFFSET) / config.max_records_per_segment).cast("int")
    parted = rows.withColumn(_BUCKET, time - F.pmod(time, F.lit(config.bucket_ms))).withColumn(_SPLIT, split)
    found = parted.groupBy(_BUCKET, _SPLIT).agg(F.min(columns.TIME), F.max(columns.TIME)).collect()
    taken = {file.segment for file in half.files} | segments_in_lineage(half)
    pairs: list[tuple[int | None, int, str]] = []
    for bucket, part, low, high in sorted((tuple(row) for row in found), key=lambda row: (row[0] or 0, row[1])):
        name = offline_segment(spec.name, _written(spec, low), _written(spec, high), taken)
        taken.add(name)
        pairs.append((bucket, part, name))
    ddl = f"{_NAMED_BUCKET} bigint, {_NAMED_SPLIT} int, {columns.SEGMENT} string"
    names = F.broadcast(bench.spark.createDataFrame(pairs, ddl))
    same = F.col(_BUCKET).eqNullSafe(F.col(_NAMED_BUCKET)) & (F.col(_SPLIT) == F.col(_NAMED_SPLIT))
    return in_files(spec, laid_out(spec, Half.OFFLINE, parted.join(names, same), hidden)), [pair[2] for pair in pairs]


def in_files(spec: TableSpec, frame: DataFrame) -> DataFrame:
    """Rows of OFFLINE, each segment in one sorted file."""
    order = [columns.SEGMENT, *spec.sort_columns, columns.TIME, *columns.ARRIVAL]
    return frame.repartition(columns.SEGMENT).sortWithinPartitions(*(quoted(name) for name in order))


def _written(spec: TableSpec, time_ms: int | None) -> object:
    """A time as the time column itself writes it, as names of segments have it."""
    field = spec.time_field
    if time_ms is None or field is None or field.time_format is None:
        return time_ms
    return field.time_format.from_millis(time_ms)
