"""A table on a real topic with real halves, and the same table told to the oracle."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow.parquet as pq

from hybrid.config.job_spec import JobSpec
from hybrid.config.offset_place import parse_place
from hybrid.config.table_config import BoundaryMode, Half, MergeType, MoveConfig, StreamConfig, TableSpec, UpsertConfig
from hybrid.ingest.loop import IngestReport, ingest_until_caught_up
from hybrid.ingest.replay import ReplayReport, replay_rejected
from hybrid.ingest.reset import ResetReport, reset_stream, resolve_reset
from hybrid.kafka.topics import TopicRecord, produce
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import open_half
from hybrid.lake.table_context import TableContext
from hybrid.move.boundary_override import BoundaryReport, OverrideRequest, change_boundary
from hybrid.move.move import MoveReport, run_move
from hybrid.move.plan import Reach
from hybrid.operations.tables.create import create_halves
from hybrid.query.engine import QueryTable, run
from hybrid.replace.job import JobReport, run_job
from hybrid.replace.job_options import JobOptions
from hybrid.schema.ingestion import IngestionConfig
from hybrid.schema.schema import FieldKind, FieldSpec, Schema
from hybrid.schema.timeformat import TimeFormat
from hybrid.schema.types import DataType
from hybrid.table.boundary import Boundary, PartitionKey
from hybrid.table.columns import rejected_segment
from tests.oracle import Event, winners

HOUR = 3_600_000
DAY = 24 * HOUR
MILLIS = TimeFormat.parse("1:MILLISECONDS:EPOCH", "test", "ts", DataType.LONG)
FIELDS = (
    FieldSpec("id", DataType.INT, FieldKind.DIMENSION, default_null=0),
    FieldSpec("key", DataType.STRING, FieldKind.DIMENSION, default_null="null"),
    FieldSpec("value", DataType.LONG, FieldKind.METRIC, default_null=0),
    FieldSpec("deleted", DataType.BOOLEAN, FieldKind.DIMENSION, default_null=False),
    FieldSpec("ts", DataType.LONG, FieldKind.DATE_TIME, default_null=0, time_format=MILLIS),
)
UPSERT = UpsertConfig("value", "deleted")


def table_spec(
    brokers: str,
    topic: str,
    *,
    upsert: bool = False,
    time_column: str | None = "ts",
    fields: tuple[FieldSpec, ...] = FIELDS,
    key: tuple[str, ...] = ("key",),
    sort: tuple[str, ...] = (),
    start: str = "smallest",
    bucket_ms: int = HOUR,
    buffer_ms: int = 0,
    merge: str = "concat",
    records_max: int = 1000,
    task_max: int = 1_000_000,
    mode: str = "exact",
    **flush: int,
) -> TableSpec:
    """A table `t` on that topic; an upsert table compares by `value`. Mode pinot stays an hour behind."""
    return TableSpec(
        name="t",
        schema=Schema("t", fields, key if upsert else ()),
        halves=frozenset(Half),
        time_column=time_column,
        stream=StreamConfig((topic,), brokers, start, **flush),
        move=MoveConfig(bucket_ms, buffer_ms, MergeType(merge), records_max, task_max),
        upsert=UPSERT if upsert else None,
        sort_columns=sort,
        boundary_mode=BoundaryMode(mode),
        boundary_lag_ms=HOUR,
    )


class Said:
    """What acts say; `when(words, do)` does something once, at the moment an act says these words."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self._awaited: list[tuple[str, Callable[[], object]]] = []

    def when(self, words: str, do: Callable[[], object]) -> None:
        self._awaited.append((words, do))

    def say(self, message: str) -> None:
        self.messages.append(message)
        for awaited in [one for one in self._awaited if one[0] in message]:
            self._awaited.remove(awaited)
            awaited[1]()

    def step(self, label: str, done: int, total: int | None) -> None:
        pass

    @property
    def all_happened(self) -> bool:
        return not self._awaited


@dataclass
class LiveTable:
    """`now` is the clock of its acts, ms."""

    spec: TableSpec
    layout: TableLayout
    shared: CommitContext
    now: int = 10 * HOUR
    said: Said = field(default_factory=Said)

    def __post_init__(self) -> None:
        self.bench = CommitContext(lambda: self.shared.spark, lambda: self.now, self.said, lock_timeout_s=120.0)

    @property
    def context(self) -> TableContext:
        return TableContext(self.bench, self.spec, self.layout)

    def create(self) -> LiveTable:
        create_halves(self.layout, self.spec, self.now)
        return self

    def copied(self, folder: Path) -> LiveTable:
        """The same table of the same topic in a folder of its own; its stream must not be read on for both."""
        layout = layout_in(folder)
        shutil.copytree(self.layout.root, layout.root)
        return LiveTable(self.spec, layout, self.shared, self.now)

    def produce(self, *rows: Mapping[str, object] | bytes, partition: int = 0, timestamp_ms: int | None = None) -> None:
        """Puts rows (as JSON), or messages as they are, into a partition of the topic."""
        values = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
        records = [TopicRecord(value, partition=partition, timestamp_ms=timestamp_ms) for value in values]
        produce(self.spec.stream.brokers, self.spec.stream.topics[0], records)

    def ingest(self, **options: int) -> IngestReport:
        return ingest_until_caught_up(self.context, **options)

    def move(self, max_buckets: int | None = 1, **options: bool) -> MoveReport:
        return run_move(self.context, reach=Reach(max_buckets), **options)

    def lenient(self, where: str | None = None) -> LiveTable:
        """Values that do not fit become nulls from now on; what matches `where` is dropped."""
        self.spec = replace(self.spec, ingestion={Half.REALTIME: IngestionConfig((), where, True)})
        return self

    def replay(self, **options: bool) -> ReplayReport:
        return replay_rejected(self.context, **options)

    def set_boundary(self, time_ms: int | None) -> BoundaryReport:
        return change_boundary(self.context, OverrideRequest(time_ms, accepted=True))

    def clear_boundary(self) -> BoundaryReport:
        return change_boundary(self.context, OverrideRequest(clear=True))

    def replace(self, segment: str, rows: Iterable[Mapping[str, object]], **options: object) -> JobReport:
        """A replacement job that puts these rows into one segment."""
        folder = self.layout.root.parent / f"input-{len(self.said.messages)}"
        folder.mkdir(exist_ok=True)
        (folder / "rows.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
        job = JobSpec(
            source="job-spec.yml", job_type="SegmentCreationAndTarPush", input_dir=folder, table_name="t",
            data_format="json", segment_name_type="fixed", segment_name=segment,
        )  # fmt: skip
        return run_job(self.context, job, JobOptions(**options))

    def reset(self, to: str, *, dry_run: bool = False) -> ResetReport:
        """Has the stream read on from a place, whatever that costs now."""
        topic = self.spec.stream.topics[0]
        told = resolve_reset(self.spec, self.layout, topic, parse_place(to, topic, self.now, "--to"))
        return told if dry_run else reset_stream(self.context, told)

    # What is there

    @property
    def offsets(self) -> dict[int, int]:
        """Committed offsets by Kafka partition, of its newest epoch."""
        return {key.partition: offset for key, offset in sorted(self.half(Half.REALTIME).realtime.offsets.items())}

    @property
    def boundary(self) -> Boundary:
        return self.half(Half.OFFLINE).offline.boundary

    def half(self, half: Half):
        return open_half(self.layout.half(half))

    def segments(self, half: Half = Half.OFFLINE) -> dict[str, int]:
        """Good rows by segment."""
        rows: dict[str, int] = {}
        for file in self.half(half).files:
            if file.segment != rejected_segment("t"):
                rows[file.segment] = rows.get(file.segment, 0) + file.rows
        return rows

    def rows(self, half: Half) -> list[dict[str, object]]:
        """The stored rows of a half with their hidden columns, in the order of files."""
        found = []
        for file in self.half(half).files:
            for row in pq.ParquetFile(file.path).read().to_pylist():
                found.append({"_hy_segment": file.segment, **row})
        return found

    def rejected(self) -> set[tuple[int, int]]:
        """Partition and offset of every rejected row."""
        rows = [row for row in self.rows(Half.REALTIME) if row["_hy_segment"] == rejected_segment("t")]
        assert all(row["_hy_reason"] for row in rows)
        return {(row["_hy_partition"], row["_hy_offset"]) for row in rows}

    def visible(self) -> list[int]:
        """The ids of the rows that can be seen without the tail: worked out from the files, and asked of the engine."""
        boundary, name = self.half(Half.OFFLINE).effective_boundary(self.spec.boundary_lag_ms), rejected_segment("t")
        events = [event for event in map(_event, self.rows(Half.OFFLINE)) if boundary.shows_offline(event.time)]
        for row in self.rows(Half.REALTIME):
            event = _event(row)
            if row["_hy_segment"] != name and not boundary.covers(event.time, _key(row), event.offset):
                events.append(event)
        if self.spec.upsert:
            events = winners(events)
        ids = sorted(event.payload for event in events if not event.is_delete)
        return ids

    def query(self, sql: str) -> list[tuple[object, ...]]:
        """What the engine answers, uncommitted rows included."""
        return [tuple(row) for row in run(sql, _Source(self)).rows]

    def queried(self) -> list[int]:
        """The ids of all rows that a user sees."""
        return sorted(row[0] for row in self.query("select id from t limit 100000"))


@dataclass(frozen=True)
class _Source:
    table: LiveTable

    def names(self) -> list[str]:
        return ["t"]

    def open(self, name: str) -> QueryTable:
        return QueryTable(self.table.spec, self.table.layout, self.table.spec.stream.brokers)


def _key(row: Mapping[str, object]) -> PartitionKey:
    return PartitionKey(*(row[f"_hy_{part}"] for part in PartitionKey._fields))


def _event(row: Mapping[str, object]) -> Event:
    return Event(
        place=(*_key(row), row["_hy_offset"]),
        time=row["_hy_time"],
        key=row.get("key"),
        comparison=row.get("value"),
        timestamp=row["_hy_timestamp"],
        is_delete=row["_hy_op"] == "delete",
        payload=row.get("id"),
    )


def layout_in(folder: Path) -> TableLayout:
    return TableLayout(folder / "warehouse" / "t")
