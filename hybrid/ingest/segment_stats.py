"""What a batch puts into each segment, counted where the rows are made."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from hybrid.table import columns
from hybrid.table.boundary import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa


class SegmentStats(NamedTuple):
    """`rows` of one segment from one Kafka partition, the `bytes` of their messages, the first offset, and so on."""

    rows: int
    bytes: int
    start: int
    timestamp_max: int
    deletes: int

    def plus(self, other: SegmentStats) -> SegmentStats:
        """Both together."""
        return SegmentStats(
            self.rows + other.rows,
            self.bytes + other.bytes,
            min(self.start, other.start),
            max(self.timestamp_max, other.timestamp_max),
            self.deletes + other.deletes,
        )


# By Kafka partition and segment; without a segment what the table's filter drops.
Pieces = Mapping[tuple[TopicPartition, str | None], SegmentStats]


def together(counted: Iterable[Pieces]) -> Pieces:
    """Pieces of several batches as one."""
    found: dict[tuple[TopicPartition, str | None], SegmentStats] = {}
    for pieces in counted:
        for place, piece in pieces.items():
            found[place] = found[place].plus(piece) if place in found else piece
    return found


def segment_stats_of(rows: pa.RecordBatch, sizes: pa.Array) -> Pieces:
    """The pieces of stored rows, `sizes` being the bytes of their messages."""
    import pyarrow as pa
    import pyarrow.compute as pc

    deleted = pc.cast(pc.equal(rows.column(columns.OP), columns.OP_DELETE), pa.int64())
    keys = [columns.TOPIC, columns.PARTITION, columns.SEGMENT]
    names = [*keys, columns.OFFSET, columns.TIMESTAMP]
    table = pa.table([*(rows.column(name) for name in names), sizes, deleted], [*names, "bytes", "deletes"])
    wanted = [
        ([], "count_all"),
        ("bytes", "sum"),
        (columns.OFFSET, "min"),
        (columns.TIMESTAMP, "max"),
        ("deletes", "sum"),
    ]
    found = (
        table.group_by(keys)
        .aggregate(wanted)
        .select([*keys, "count_all", "bytes_sum", f"{columns.OFFSET}_min", f"{columns.TIMESTAMP}_max", "deletes_sum"])
    )
    each = zip(*(column.to_pylist() for column in found.columns), strict=True)
    return {(TopicPartition(*one[:2]), one[2]): SegmentStats(*one[3:]) for one in each}


def segment_stats_to_json(pieces: Pieces) -> str:
    """How a worker tells them."""
    return json.dumps([[*place, segment, *piece] for (place, segment), piece in pieces.items()])


def segment_stats_from_json(text: str) -> Pieces:
    """What `segment_stats_to_json` told."""
    return {(TopicPartition(*one[:2]), one[2]): SegmentStats(*one[3:]) for one in json.loads(text)}
