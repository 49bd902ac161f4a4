"""Builds the halves of a table without Spark: delta-rs writes what a Spark job would, state and all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from hybrid.config.table_config import BoundaryMode, BucketConfig, Half, StreamConfig, TableSpec, UpsertConfig
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.create import arrow_schema, create_half
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import open_half
from hybrid.lake.table_context import TableContext
from hybrid.query.query_table import QueryTable
from hybrid.query.tail import Tail, TailMessage
from hybrid.schema.schema import FieldKind, FieldSpec, Schema
from hybrid.schema.timeformat import TimeFormat, TimeKind
from hybrid.schema.types import DataType
from hybrid.table.boundary import Boundary, PartitionKey
from hybrid.table.state import (
    AS_STORED,
    READ_VERSION,
    Act,
    LineagePointer,
    OfflineState,
    RealtimeState,
    to_user_metadata,
)
from tests.shared_delta import append

MILLIS = TimeFormat("1:MILLISECONDS:EPOCH", TimeKind.EPOCH)
KEY = PartitionKey("kafka", "orders", 0, 0)


@dataclass(frozen=True)
class Row:
    """A row of the test table as it is stored: user values by name, and where it comes from."""

    values: Mapping[str, object]
    time_ms: int | None
    offset: int | None
    key: PartitionKey | None = KEY
    timestamp_ms: int | None = 0
    op: str = "row"
    segment: str = "orders__0__0__20210924T0602Z"
    reason: str | None = None
    raw: bytes | None = None

    def stored(self) -> dict[str, object]:
        key = self.key
        return {
            "_hy_segment": self.segment,
            "_hy_connector": key.connector if key else None,
            "_hy_topic": key.topic if key else None,
            "_hy_epoch": key.epoch if key else None,
            "_hy_partition": key.partition if key else None,
            "_hy_offset": self.offset,
            "_hy_timestamp": self.timestamp_ms,
            "_hy_op": self.op,
            "_hy_time": self.time_ms,
            "_hy_reason": self.reason,
            "_hy_raw": self.raw,
            **self.values,
        }


def orders_spec(
    *,
    upsert: bool = False,
    deletes: bool = False,
    time_column: str | None = "ts",
    extra: Sequence[FieldSpec] = (),
    halves: Iterable[Half] = (Half.REALTIME, Half.OFFLINE),
) -> TableSpec:
    """The orders table: order_id INT, customer STRING, amount FLOAT, ts LONG (and `gone` BOOLEAN for deletes)."""
    fields = [
        FieldSpec("order_id", DataType.INT, FieldKind.DIMENSION),
        FieldSpec("customer", DataType.STRING, FieldKind.DIMENSION),
        FieldSpec("amount", DataType.FLOAT, FieldKind.METRIC),
        FieldSpec("ts", DataType.LONG, FieldKind.DATE_TIME, time_format=MILLIS),
        *([FieldSpec("gone", DataType.BOOLEAN, FieldKind.DIMENSION)] if deletes else []),
        *extra,
    ]
    return TableSpec(
        name="orders",
        schema=Schema("orders", tuple(fields), ("order_id",) if upsert else ()),
        halves=frozenset(halves),
        time_column=time_column,
        stream=StreamConfig(("orders",), "127.0.0.1:1"),
        move=None,
        upsert=UpsertConfig("ts", "gone" if deletes else None) if upsert else None,
    )


@dataclass
class Halves:
    """A table on disk and what it has been told; also a TableSource of one table."""

    spec: TableSpec
    layout: TableLayout
    realtime: RealtimeState = field(default_factory=lambda: RealtimeState(act("create", 0)))
    offline: OfflineState = field(default_factory=lambda: OfflineState(act("create", 0)))
    brokers: str | None = None

    @classmethod
    def create(cls, folder: Path, spec: TableSpec, mode: BoundaryMode | None = None) -> Halves:
        built = cls(spec, TableLayout(folder / spec.name))
        built.offline = replace(built.offline, boundary=Boundary(mode=mode or BoundaryMode.EXACT))
        for half in spec.halves:
            create_half(built.layout.half(half), spec, half, built.state(half))
        return built

    def context(self, bench: CommitContext) -> TableContext:
        return TableContext(bench, self.spec, self.layout)

    def state(self, half: Half) -> RealtimeState | OfflineState:
        return self.realtime if half is Half.REALTIME else self.offline

    def commit_realtime(self, rows: Sequence[Row], kind: str = "ingest", **changes: object) -> int:
        """Appends realtime rows; `changes` are those of the state (offsets and so on)."""
        self.realtime = replace(self.realtime, act=act(kind, self.realtime.act.number + 1), **changes)  # type: ignore[arg-type]
        return self._append(Half.REALTIME, rows)

    def commit_many(self, row: Row, columns: Mapping[str, pa.Array]) -> int:
        """Appends realtime rows that are like `row` but for these columns, at the offsets from 0 on."""
        count = len(next(iter(columns.values())))
        self.realtime = replace(
            self.realtime, act=act("ingest", self.realtime.act.number + 1), offsets={row.key: count}
        )
        columns = {"_hy_offset": pa.array(range(count)), **columns}
        return self._write(Half.REALTIME, self._filled(Half.REALTIME, row.stored(), columns))

    def commit_columns(self, row: Row, columns: Mapping[str, pa.Array]) -> int:
        """Appends offline rows that are like `row` but for these columns."""
        newest = open_half(self.layout.half(Half.OFFLINE)).offline
        self.offline = replace(newest, act=act("move", newest.act.number + 1, segments=[row.segment]))
        return self._write(Half.OFFLINE, self._filled(Half.OFFLINE, row.stored(), columns))

    def _filled(self, half: Half, stored: Mapping[str, object], columns: Mapping[str, pa.Array]) -> pa.Table:
        count, schema = len(next(iter(columns.values()))), arrow_schema(self.spec, half)
        found = {
            field.name: value if isinstance(value, pa.Array) else pa.array([value] * count, field.type)
            for field in schema
            for value in [columns.get(field.name, stored.get(field.name))]
        }
        return pa.table(found).cast(schema)

    def commit_offline(
        self, rows: Sequence[Row], boundary: Boundary | None = None, kind: str = "move", **detail: object
    ) -> int:
        """Appends offline rows, with a new boundary; without rows the boundary alone. `detail` is the commit's."""
        newest = open_half(self.layout.half(Half.OFFLINE)).offline  # a test may have acted by Spark meanwhile
        made = act(kind, newest.act.number + 1, segments=sorted({row.segment for row in rows}), **detail)
        self.offline = replace(
            newest,
            act=made,
            boundary=boundary if boundary is not None else newest.boundary,
        )
        return self._append(Half.OFFLINE, rows)

    def as_stored(self) -> dict[str, object]:
        """What the commit of a move says that wrote rows of the newest REALTIME version as they were stored."""
        return {AS_STORED: True, READ_VERSION: open_half(self.layout.half(Half.REALTIME)).version}

    def commit_task(self, config: BucketConfig) -> int:
        """What a task leaves in the OFFLINE half's state, without rows."""
        newest = open_half(self.layout.half(Half.OFFLINE)).offline
        self.offline = replace(newest, act=act("merge", newest.act.number + 1)).with_task(config)
        return self._append(Half.OFFLINE, [])

    def commit_entry(self, kind: str, **detail: object) -> str:
        """A lineage entry without rows; its id."""
        half = open_half(self.layout.half(Half.OFFLINE))
        newest, previous = half.offline, half.offline.last_lineage
        entry = {"previous": vars(previous) if previous else None, "segments_from": [], "segments_to": [], **detail}
        made = act(kind, newest.act.number + 1, **entry)
        self.offline = replace(newest, act=made, last_lineage=LineagePointer(made.id, half.version + 1))
        self._append(Half.OFFLINE, [])
        return made.id

    def _append(self, half: Half, rows: Sequence[Row]) -> int:
        schema = arrow_schema(self.spec, half)
        stored = [row.stored() for row in rows]
        table = pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in stored], schema=schema)
        return self._write(half, table)

    def _write(self, half: Half, table: pa.Table) -> int:
        path = self.layout.half(half)
        append(str(path), table, {"userMetadata": to_user_metadata(self.state(half))})
        return max(int(entry.stem) for entry in (path / "_delta_log").glob("[0-9]*.json"))

    def names(self) -> list[str]:
        return [self.spec.name]

    def open(self, name: str) -> QueryTable:
        assert name == self.spec.name
        return QueryTable(self.spec, self.layout, self.brokers)


def act(kind: str, number: int, **detail: object) -> Act:
    return Act(f"{kind}-{number}", number, kind, "2021-09-24T06:02:31.000+00:00", detail)


class ListTail:
    """A tail from a list: what Kafka would hold. Messages below the committed offsets are not in it."""

    def __init__(self, messages: Sequence[TailMessage] = (), warnings: Sequence[str] = ()) -> None:
        self.messages, self.warnings = list(messages), list(warnings)

    def read(self, spec: TableSpec, state: RealtimeState, brokers: str | None) -> Tail:
        beyond = [message for message in self.messages if message.offset >= state.offsets.get(message.key, 0)]
        positions = dict(state.offsets)
        for message in beyond:
            positions[message.key] = max(positions.get(message.key, 0), message.offset + 1)
        return Tail(beyond, positions, self.warnings)
