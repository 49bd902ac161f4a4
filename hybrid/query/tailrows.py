"""The rows of a tail for DuckDB, decoded by the same decoder that Spark uses.

For a statement over files they are bound as lists and unnested. Converting Python values to Arrow imports pandas, which
takes longer than everything else in a `hybrid query`. A server, which runs for long, passes them as Arrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hybrid.config.table_config import TableSpec
from hybrid.query.connection import identifier
from hybrid.query.tail import TailMessage
from hybrid.query.types import HIDDEN_TYPES, duckdb_type
from hybrid.records.messages import Message
from hybrid.table import columns
from hybrid.table.boundary import PartitionKey
from hybrid.table.names import realtime_segment
from hybrid.table.state import RealtimeState

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

    from hybrid.records.decode import Decoder

_ARROW = {"VARCHAR": "string", "INTEGER": "int32", "BIGINT": "int64"}
# Columns that often have the same value in all rows.
_SHARED = frozenset({columns.SEGMENT, columns.CONNECTOR, columns.TOPIC, columns.EPOCH, columns.PARTITION, columns.OP})


@dataclass(frozen=True)
class TailRows:
    """Rows by column: values by stored column name. `segments` are the segments of the rows."""

    spec: TableSpec
    values: Mapping[str, Sequence[Any]]
    segments: frozenset[str]
    count: int

    @property
    def has_deletes(self) -> bool:
        """Whether the rows include delete markers."""
        return columns.OP_DELETE in self.values[columns.OP]

    def texts(self, name: str) -> set[str]:
        """The distinct texts in a column."""
        return {value for value in self.values[name] if value is not None}

    def joined(self, later: TailRows) -> TailRows:
        """These rows and later ones of the same table."""
        values = {name: [*earlier, *later.values[name]] for name, earlier in self.values.items()}
        return TailRows(self.spec, values, self.segments | later.segments, self.count + later.count)

    def arrow(self, schema: pa.Schema) -> pa.Table:
        """The rows as Arrow; `schema` is the table's `arrow_schema`."""
        import pyarrow as pa

        return pa.table([pa.array(self.values[field.name], field.type) for field in schema], schema)

    def sql(self) -> tuple[str, list[Any]]:
        """A SELECT of the rows, and its parameters in order."""
        select, parameters, types = [], [], types_of(self.spec)
        for column, values in self.values.items():
            kind, name = types[column], identifier(column)
            # A value shared by all rows costs DuckDB far less than a list.
            shared = self.count == 1 or (column in _SHARED and all(value == values[0] for value in values))
            select.append(f"?::{kind} AS {name}" if shared else f"unnest(?::{kind}[]) AS {name}")
            parameters.append(values[0] if shared else values)
        return f"SELECT {', '.join(select)}", parameters

    def load(self, connection: DuckDBPyConnection, name: str) -> None:
        """Creates a temporary table of the rows."""
        select, parameters = self.sql()
        connection.execute(f"CREATE TEMP TABLE {identifier(name)} AS {select}", parameters)


def types_of(spec: TableSpec) -> Mapping[str, str]:
    """DuckDB's types by stored column name."""
    return {**{field.name: duckdb_type(field) for field in spec.schema.fields}, **HIDDEN_TYPES}


def arrow_schema(spec: TableSpec) -> pa.Schema:
    """Arrow's types by stored column name, in the order of `types_of`."""
    import pyarrow as pa

    user = [(field.name, field.arrow_type()) for field in spec.schema.fields]
    return pa.schema([*user, *((name, pa.type_for_alias(_ARROW[kind])) for name, kind in HIDDEN_TYPES.items())])


def tail_decoder(spec: TableSpec) -> Decoder:
    """The decoder of a table's messages. Making it takes as long as decoding a few messages."""
    from hybrid.records.decode import Decoder

    return Decoder(spec)


def tail_rows(
    decoder: Decoder, spec: TableSpec, state: RealtimeState, messages: Sequence[TailMessage], now_ms: int
) -> TailRows | None:
    """The rows among `messages`; messages that are no rows are left for ingestion to reject. None without rows."""
    values, times_ms = [message.value for message in messages], [message.timestamp_ms for message in messages]
    batch = decoder.decode_batch(values, times_ms, _whole(spec, messages))
    good = batch.rows
    if not good:
        return None
    row_messages = [messages[batch.origins[place]] for place in good]
    segments = _segments(spec, state, row_messages, now_ms)
    whole = len(good) == len(batch.reasons)
    user = {
        field.name: values if whole else [values[place] for place in good]
        for field, values in zip(spec.schema.fields, batch.columns, strict=True)
    }
    hidden: dict[str, list[Any]] = {
        columns.SEGMENT: segments,
        columns.CONNECTOR: [message.key.connector for message in row_messages],
        columns.TOPIC: [message.key.topic for message in row_messages],
        columns.EPOCH: [message.key.epoch for message in row_messages],
        columns.PARTITION: [message.key.partition for message in row_messages],
        columns.OFFSET: [message.offset for message in row_messages],
        columns.TIMESTAMP: [message.timestamp_ms for message in row_messages],
        columns.OP: [columns.OP_DELETE if batch.deletes[place] else columns.OP_ROW for place in good],
        columns.TIME: [batch.times_ms[place] for place in good],
    }
    return TailRows(spec, {**user, **hidden}, frozenset(segments), len(good))


def _whole(spec: TableSpec, messages: Sequence[TailMessage]) -> list[Message] | None:
    """The messages for the decoder, if the table uses more than their values."""
    if spec.stream is None or not spec.stream.metadata:
        return None
    return [
        Message(
            message.value,
            message.message_key,
            message.headers,
            message.key.partition,
            message.offset,
            message.timestamp_ms,
        )
        for message in messages
    ]


def consuming_segment(spec: TableSpec, state: RealtimeState, key: PartitionKey, now_ms: int) -> str:
    """The partition's consuming segment; without one, the segment that its next commit would open."""
    segment = state.consuming.get(key)
    if segment is not None:
        return segment.name
    return realtime_segment(spec.name, spec.group(key.topic, key.partition), state.sequences.get(key, 0), now_ms)


def _segments(spec: TableSpec, state: RealtimeState, messages: Sequence[TailMessage], now_ms: int) -> list[str]:
    names = {key: consuming_segment(spec, state, key, now_ms) for key in {message.key for message in messages}}
    return [names[message.key] for message in messages]
