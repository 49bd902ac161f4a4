"""The rows of a tail, as DuckDB takes them: by the one decoder that Spark uses too.

They are bound as lists and unnested, not handed over as Arrow: making Arrow of Python values imports pandas, which
would cost a whole `hybrid query` more than everything else it does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hybrid.query.connection import identifier
from hybrid.query.tail import TailMessage
from hybrid.query.types import HIDDEN_TYPES, duckdb_type
from hybrid.spec.table_config import TableSpec
from hybrid.table import columns
from hybrid.table.boundary import PartitionKey
from hybrid.table.names import realtime_segment
from hybrid.table.state import RealtimeState

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True)
class TailRows:
    """Rows column by column: values and DuckDB types by stored column name. `segments` are those the rows are in."""

    values: Mapping[str, Sequence[Any]]
    types: Mapping[str, str]
    segments: frozenset[str]
    count: int

    @property
    def has_deletes(self) -> bool:
        """Whether delete markers are among them."""
        return columns.OP_DELETE in self.values[columns.OP]

    def sql(self) -> tuple[str, list[Sequence[Any]]]:
        """A SELECT of the rows, and its parameters in order."""
        unnested = ", ".join(f"unnest(?::{self.types[column]}[]) AS {identifier(column)}" for column in self.values)
        return f"SELECT {unnested}", list(self.values.values())

    def load(self, connection: DuckDBPyConnection, name: str) -> None:
        """Makes a temporary table of them."""
        select, parameters = self.sql()
        connection.execute(f"CREATE TEMP TABLE {identifier(name)} AS {select}", parameters)


def tail_rows(spec: TableSpec, state: RealtimeState, messages: Sequence[TailMessage], now_ms: int) -> TailRows | None:
    """The rows among `messages`; what is no row of the table is left for ingestion to reject. None without rows."""
    from hybrid.table.decode import Decoder

    values, times_ms = [message.value for message in messages], [message.timestamp_ms for message in messages]
    batch = Decoder(spec).decode_batch(values, times_ms)
    good = batch.rows
    if not good:
        return None
    kept = [messages[place] for place in good]
    segments = _segments(spec, state, kept, now_ms)
    user = {
        field.name: [values[place] for place in good]
        for field, values in zip(spec.schema.fields, batch.columns, strict=True)
    }
    hidden: dict[str, list[Any]] = {
        columns.SEGMENT: segments,
        columns.CONNECTOR: [message.key.connector for message in kept],
        columns.TOPIC: [message.key.topic for message in kept],
        columns.EPOCH: [message.key.epoch for message in kept],
        columns.PARTITION: [message.key.partition for message in kept],
        columns.OFFSET: [message.offset for message in kept],
        columns.TIMESTAMP: [message.timestamp_ms for message in kept],
        columns.OP: [columns.OP_DELETE if batch.deletes[place] else columns.OP_ROW for place in good],
        columns.TIME: [batch.times_ms[place] for place in good],
    }
    types = {**{field.name: duckdb_type(field) for field in spec.schema.fields}, **HIDDEN_TYPES}
    return TailRows({**user, **hidden}, types, frozenset(segments), len(good))


def consuming_segment(spec: TableSpec, state: RealtimeState, key: PartitionKey, now_ms: int) -> str:
    """The partition's consuming segment; when there is none, the one that its next commit would open."""
    found = state.consuming.get(key)
    if found is not None:
        return found.name
    return realtime_segment(spec.name, key.partition, state.sequences.get(key, 0), now_ms)


def _segments(spec: TableSpec, state: RealtimeState, messages: Sequence[TailMessage], now_ms: int) -> list[str]:
    names = {key: consuming_segment(spec, state, key, now_ms) for key in {message.key for message in messages}}
    return [names[message.key] for message in messages]
