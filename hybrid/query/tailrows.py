"""The rows of a tail, as DuckDB takes them: by the one decoder that Spark uses too.

They are bound as lists and unnested, which is the quickest way for a few. Making Arrow of Python values imports pandas,
which would cost a whole `hybrid query` more than everything else it does; a server takes many rows so, in a tenth of
the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hybrid.query.connection import identifier
from hybrid.query.tail import TailMessage
from hybrid.query.types import HIDDEN_TYPES, duckdb_type
from hybrid.spec.table_config import TableSpec
from hybrid.table import columns
from hybrid.table.boundary import PartitionKey
from hybrid.table.messages import Message
from hybrid.table.names import realtime_segment
from hybrid.table.state import RealtimeState

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

LISTED_MAX = 500
# Columns that often have one value in all rows.
_SHARED = frozenset({columns.SEGMENT, columns.CONNECTOR, columns.TOPIC, columns.EPOCH, columns.PARTITION, columns.OP})


@dataclass(frozen=True)
class TailRows:
    """Rows column by column: values by stored column name. `segments` are those the rows are in."""

    spec: TableSpec
    values: Mapping[str, Sequence[Any]]
    segments: frozenset[str]
    count: int

    @property
    def has_deletes(self) -> bool:
        """Whether delete markers are among them."""
        return columns.OP_DELETE in self.values[columns.OP]

    @cached_property
    def types(self) -> Mapping[str, str]:
        """DuckDB's types by stored column name."""
        return {**{field.name: duckdb_type(field) for field in self.spec.schema.fields}, **HIDDEN_TYPES}

    @contextmanager
    def offered(self, connection: DuckDBPyConnection, name: str) -> Iterator[tuple[str, Sequence[Any]]]:
        """A SELECT of the rows on that connection, and its parameters. Many are handed over as Arrow, as `name`."""
        if self.count <= LISTED_MAX:
            yield self.sql()
            return
        typed = (f"{identifier(column)}::{self.types[column]} AS {identifier(column)}" for column in self.values)
        connection.register(name, self._arrow())
        try:
            yield f"SELECT {', '.join(typed)} FROM {identifier(name)}", ()
        finally:
            connection.unregister(name)

    def _arrow(self) -> pa.Table:
        import pyarrow as pa

        user = {field.name: pa.array(self.values[field.name], field.arrow_type()) for field in self.spec.schema.fields}
        return pa.table({**user, **{name: pa.array(self.values[name]) for name in HIDDEN_TYPES}})

    def sql(self) -> tuple[str, list[Any]]:
        """A SELECT of the rows, and its parameters in order."""
        select, parameters = [], []
        for column, values in self.values.items():
            kind, name = self.types[column], identifier(column)
            # A value that all rows share takes DuckDB far less than a list of them does.
            shared = self.count == 1 or (column in _SHARED and all(value == values[0] for value in values))
            select.append(f"?::{kind} AS {name}" if shared else f"unnest(?::{kind}[]) AS {name}")
            parameters.append(values[0] if shared else values)
        return f"SELECT {', '.join(select)}", parameters

    def load(self, connection: DuckDBPyConnection, name: str) -> None:
        """Makes a temporary table of them."""
        select, parameters = self.sql()
        connection.execute(f"CREATE TEMP TABLE {identifier(name)} AS {select}", parameters)


def tail_rows(spec: TableSpec, state: RealtimeState, messages: Sequence[TailMessage], now_ms: int) -> TailRows | None:
    """The rows among `messages`; what is no row of the table is left for ingestion to reject. None without rows."""
    from hybrid.table.decode import Decoder

    values, times_ms = [message.value for message in messages], [message.timestamp_ms for message in messages]
    batch = Decoder(spec).decode_batch(values, times_ms, _whole(spec, messages))
    good = batch.rows
    if not good:
        return None
    kept = [messages[batch.origins[place]] for place in good]
    segments = _segments(spec, state, kept, now_ms)
    whole = len(good) == len(batch.reasons)
    user = {
        field.name: values if whole else [values[place] for place in good]
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
    return TailRows(spec, {**user, **hidden}, frozenset(segments), len(good))


def _whole(spec: TableSpec, messages: Sequence[TailMessage]) -> list[Message] | None:
    """The messages as the decoder takes them, where the table takes more than their values."""
    if spec.stream is None or not spec.stream.metadata:
        return None
    return [
        Message(one.value, one.message_key, one.headers, one.key.partition, one.offset, one.timestamp_ms)
        for one in messages
    ]


def consuming_segment(spec: TableSpec, state: RealtimeState, key: PartitionKey, now_ms: int) -> str:
    """The partition's consuming segment; when there is none, the one that its next commit would open."""
    found = state.consuming.get(key)
    if found is not None:
        return found.name
    return realtime_segment(spec.name, spec.group(key.topic, key.partition), state.sequences.get(key, 0), now_ms)


def _segments(spec: TableSpec, state: RealtimeState, messages: Sequence[TailMessage], now_ms: int) -> list[str]:
    names = {key: consuming_segment(spec, state, key, now_ms) for key in {message.key for message in messages}}
    return [names[message.key] for message in messages]
