"""Statistics of a batch per segment, counted where the rows are made."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from hybrid.table import columns
from hybrid.table.boundary import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa


class SegmentStats(NamedTuple):
    """Rows of a segment from one Kafka partition: count, message bytes, first offset, highest timestamp, deletes."""

    rows: int
    bytes: int
    start: int
    timestamp_max: int
    deletes: int

    def plus(self, other: SegmentStats) -> SegmentStats:
        """The sum of both."""
        return SegmentStats(
            self.rows + other.rows,
            self.bytes + other.bytes,
            min(self.start, other.start),
            max(self.timestamp_max, other.timestamp_max),
            self.deletes + other.deletes,
        )


# By Kafka partition and segment. Segment None counts the messages that the table's filter drops.
Pieces = Mapping[tuple[TopicPartition, str | None], SegmentStats]


def together(counted: Iterable[Pieces]) -> Pieces:
    """The sum of the statistics of several batches."""
    total: dict[tuple[TopicPartition, str | None], SegmentStats] = {}
    for pieces in counted:
        for place, piece in pieces.items():
            total[place] = total[place].plus(piece) if place in total else piece
    return total


def segment_stats_of(rows: pa.RecordBatch, sizes: pa.Array) -> Pieces:
    """The statistics of stored rows; `sizes` are the bytes of their messages."""
    import pyarrow as pa
    import pyarrow.compute as pc

    deleted = pc.cast(pc.equal(rows.column(columns.OP), columns.OP_DELETE), pa.int64())
    keys = [columns.TOPIC, columns.PARTITION, columns.SEGMENT]
    names = [*keys, columns.OFFSET, columns.TIMESTAMP]
    table = pa.table([*(rows.column(name) for name in names), sizes, deleted], [*names, "bytes", "deletes"])
    aggregations = [
        ([], "count_all"),
        ("bytes", "sum"),
        (columns.OFFSET, "min"),
        (columns.TIMESTAMP, "max"),
        ("deletes", "sum"),
    ]
    aggregated = (
        table.group_by(keys)
        .aggregate(aggregations)
        .select([*keys, "count_all", "bytes_sum", f"{columns.OFFSET}_min", f"{columns.TIMESTAMP}_max", "deletes_sum"])
    )
    each = zip(*(column.to_pylist() for column in aggregated.columns), strict=True)
    return {(TopicPartition(*values[:2]), values[2]): SegmentStats(*values[3:]) for values in each}


def segment_stats_to_json(pieces: Pieces) -> str:
    """The statistics as a worker reports them."""
    return json.dumps([[*place, segment, *piece] for (place, segment), piece in pieces.items()])


def segment_stats_from_json(text: str) -> Pieces:
    """The inverse of `segment_stats_to_json`."""
    return {(TopicPartition(*values[:2]), values[2]): SegmentStats(*values[3:]) for values in json.loads(text)}
