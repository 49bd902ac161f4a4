"""A logical table as its users configured it: schema plus the REALTIME and OFFLINE table configs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from hybrid.spec.avromessages import AvroMessages
from hybrid.spec.batch_ingestion import BatchIngestion
from hybrid.spec.connectors import Connector, JsonFlavor
from hybrid.spec.cron import Cron
from hybrid.spec.csvformat import CsvFormat
from hybrid.spec.expectations import Expectation
from hybrid.spec.ingestion import IngestionConfig
from hybrid.spec.kafka_security import PLAINTEXT, KafkaSecurity
from hybrid.spec.schema import FieldSpec, Schema


class Half(StrEnum):
    """The two halves of a logical table; also the table types of Pinot's configs."""

    REALTIME = "REALTIME"
    OFFLINE = "OFFLINE"


class BoundaryMode(StrEnum):
    """What says which half shows a row: the moves' own boundary, or Pinot's rule over the offline half's last time."""

    EXACT = "exact"
    PINOT = "pinot"


class MergeType(StrEnum):
    """How the move merges the rows of one bucket. LATEST keeps the winning row of each primary key."""

    CONCAT = "concat"
    DEDUP = "dedup"
    LATEST = "latest"


# The comparison column of a table whose rows are newer when they arrive later: Kafka's timestamp, which every row has.
ARRIVED = "_hy_timestamp"
# The connector of a stream that a table config's streamConfigs name; connectors of a DDL have names of their own.
CONFIGURED = "kafka"


class MessageFormat(StrEnum):
    """What a message is: a record, or what happens to one: `{"insert": record}` or `{"delete": record}`, or an
    envelope of Debezium.
    """

    RECORD = "raw"
    CHANGE = "insert_delete"
    DEBEZIUM = "debezium"


class Records(StrEnum):
    """How many records a message holds: ONE object, any number as LINES of their own, or all in one ARRAY."""

    ONE = "one"
    LINES = "lines"
    ARRAY = "array"


@dataclass(frozen=True)
class StreamConfig:
    """Where live rows come from and when a consuming segment is sealed.

    `brokers` is a bootstrap list; `offset_reset` is `smallest`, `largest` (Pinot's default), a time in ISO 8601 or a
    period before the table's creation; thresholds are in rows, bytes (of the message values) and milliseconds since the
    segment's first commit. `connector` is who reads it. `codec` says how messages are written, None: as JSON. With
    `metadata` the key, headers and coordinates of a message are fields of its record (see `hybrid.table.messages`).
    `security` is that of all connections.
    """

    topic: str
    brokers: str
    offset_reset: str = "largest"
    flush_rows: int = 5_000_000
    flush_bytes: int = 200 * 1024 * 1024
    flush_ms: int = 6 * 3_600_000
    connector: str = CONFIGURED
    message: MessageFormat = MessageFormat.RECORD
    records: Records = Records.ONE
    flavor: JsonFlavor = JsonFlavor.DEFAULT
    codec: CsvFormat | AvroMessages | None = None
    metadata: bool = False
    security: KafkaSecurity = PLAINTEXT


@dataclass(frozen=True)
class BucketConfig:
    """How the rows of closed buckets of time are merged into segments of OFFLINE; times in milliseconds."""

    bucket_ms: int = 86_400_000
    buffer_ms: int = 172_800_000
    merge_type: MergeType = MergeType.CONCAT
    max_records_per_segment: int = 5_000_000
    max_records_per_task: int = 50_000_000


@dataclass(frozen=True)
class MoveConfig(BucketConfig):
    """The RealtimeToOfflineSegmentsTask's settings. Without `schedule` it runs when asked to."""

    schedule: Cron | None = None


@dataclass(frozen=True)
class MergeLevel(BucketConfig):
    """A level of the MergeRollupTask: segments that lie inside one of its buckets are merged."""

    name: str = ""


@dataclass(frozen=True)
class CompactionConfig:
    """The UpsertCompactionTask's settings: a segment that was last written `buffer_ms` ago or before is written anew
    when at least `rows_min` of its rows, and `percent_min` in a hundred, are superseded.
    """

    buffer_ms: int
    percent_min: int
    rows_min: int
    schedule: Cron | None = None


@dataclass(frozen=True)
class UpsertConfig:
    """FULL upsert: one row per primary key, the one with the highest comparison value.

    `delete_column` names a BOOLEAN column whose true value marks a delete marker.
    """

    comparison_column: str
    delete_column: str | None = None


@dataclass(frozen=True)
class TableSpec:
    """A logical table. `realtime_doc`, `offline_doc`, `schema_doc` are the documents as given (after --set).

    `index_columns` are Pinot's inverted indexes: columns that queries look rows up by.
    `ingestion` says what happens to records on their way in: REALTIME's to messages, OFFLINE's to the files of jobs.
    `boundary_mode` is what the configs ask for (None: nothing; what the table has stands in its OFFLINE half);
    `boundary_lag_ms` is how far mode `pinot` stays behind the last offline time; `batch` is how jobs push to OFFLINE.
    `by_flows`: flows bring its rows, so that REALTIME has no stream of its own. `connectors` bring its rows: the one of
    Kafka is its stream.
    `ignores_case`: fields of records are columns whatever their case. `ddl_columns`: see `column_order`.
    `expectations` must hold of the rows of every job. `revert_window_ms` is how long replaced data is kept, fixed when
    a half is laid. `retention` is how long a half keeps its rows, in ms; a half that keeps them for ever is not in it.
    `merge_levels` say how segments of OFFLINE are merged, shortest buckets first.
    Schedules are of tasks that no config names; None: they run when they are asked to.
    """

    name: str
    schema: Schema
    halves: frozenset[Half]
    time_column: str | None
    stream: StreamConfig | None
    move: MoveConfig | None
    upsert: UpsertConfig | None
    sort_columns: tuple[str, ...] = ()
    index_columns: tuple[str, ...] = ()
    null_handling: bool = False
    ingestion: Mapping[Half, IngestionConfig] = field(default_factory=dict)
    boundary_mode: BoundaryMode | None = None
    boundary_lag_ms: int = 86_400_000
    revert_window_ms: int = 30 * 86_400_000
    retention: Mapping[Half, int] = field(default_factory=dict)
    retention_schedule: Cron | None = None
    merge_levels: tuple[MergeLevel, ...] = ()
    merge_schedule: Cron | None = None
    compaction: CompactionConfig | None = None
    vacuum_schedule: Cron | None = None
    optimize_schedule: Cron | None = None
    batch: BatchIngestion = field(default_factory=BatchIngestion)
    by_flows: bool = False
    connectors: tuple[Connector, ...] = ()
    ignores_case: bool = False
    ddl_columns: tuple[str, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    schema_doc: dict[str, object] | None = None
    realtime_doc: dict[str, object] | None = None
    offline_doc: dict[str, object] | None = None
    warnings: tuple[str, ...] = ()

    @property
    def time_field(self) -> FieldSpec | None:
        """The field of the time column, or None on a table without one."""
        return self.schema.find(self.time_column) if self.time_column else None

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The primary key by which rows are upserted; empty on an append table."""
        return self.schema.primary_key if self.upsert else ()

    @property
    def column_order(self) -> tuple[str, ...]:
        """The columns in the order in which a DDL names them; a schema keeps the time column in a list of its own."""
        return self.ddl_columns or self.schema.column_names

    @property
    def nets_deletes(self) -> bool:
        """Whether each delete takes one equal row away: rows without a key, from a stream of inserts and deletes."""
        return self.stream is not None and self.stream.message is not MessageFormat.RECORD and not self.primary_key

    @property
    def first_boundary_mode(self) -> BoundaryMode:
        """The mode that a table of this definition is created with.

        `exact` where rows move here by a task of the table; `pinot` where outside jobs push to the OFFLINE half.
        """
        if self.boundary_mode is not None:
            return self.boundary_mode
        return BoundaryMode.PINOT if self.is_pushed and len(self.halves) == len(Half) else BoundaryMode.EXACT

    @property
    def is_pushed(self) -> bool:
        """Whether outside jobs alone bring offline rows: nothing here names a frontier."""
        return self.move is None and not (self.by_flows or self.connectors)
