"""Tail messages as an Arrow table with the columns of a stored row, by the one decoder that Spark uses too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hybrid.query.tail import TailMessage
from hybrid.spec.table_config import TableSpec
from hybrid.table.boundary import PartitionKey
from hybrid.table.columns import OP_DELETE, OP_ROW
from hybrid.table.names import realtime_segment
from hybrid.table.state import RealtimeState

if TYPE_CHECKING:
    import pyarrow as pa


def tail_table(spec: TableSpec, state: RealtimeState, messages: Sequence[TailMessage], now_ms: int) -> pa.Table | None:
    """The rows among `messages`; what is no row of the table is left for ingestion to reject. None without rows."""
    import pyarrow as pa

    from hybrid.table.decode import Decoder

    batch = Decoder(spec).decode_batch([message.value for message in messages])
    good = [place for place, reason in enumerate(batch.reasons) if reason is None]
    if not good:
        return None
    arrays = {
        field.name: pa.array([values[place] for place in good], field.arrow_type())
        for field, values in zip(spec.schema.fields, batch.columns, strict=True)
    }
    kept = [messages[place] for place in good]
    return pa.table(
        {
            **arrays,
            "_hy_segment": pa.array(_segments(spec, state, kept, now_ms), pa.string()),
            "_hy_connector": pa.array([message.key.connector for message in kept], pa.string()),
            "_hy_topic": pa.array([message.key.topic for message in kept], pa.string()),
            "_hy_epoch": pa.array([message.key.epoch for message in kept], pa.int32()),
            "_hy_partition": pa.array([message.key.partition for message in kept], pa.int32()),
            "_hy_offset": pa.array([message.offset for message in kept], pa.int64()),
            "_hy_timestamp": pa.array([message.timestamp_ms for message in kept], pa.int64()),
            "_hy_op": pa.array([OP_DELETE if batch.deletes[place] else OP_ROW for place in good], pa.string()),
            "_hy_time": pa.array([batch.times_ms[place] for place in good], pa.int64()),
        }
    )


def consuming_segment(spec: TableSpec, state: RealtimeState, key: PartitionKey, now_ms: int) -> str:
    """The partition's consuming segment; when there is none, the one that its next commit would open."""
    found = state.consuming.get(key)
    if found is not None:
        return found.name
    return realtime_segment(spec.name, key.partition, state.sequences.get(key, 0), now_ms)


def _segments(spec: TableSpec, state: RealtimeState, messages: Sequence[TailMessage], now_ms: int) -> list[str]:
    names = {key: consuming_segment(spec, state, key, now_ms) for key in {message.key for message in messages}}
    return [names[message.key] for message in messages]
