"""The definition of a logical table, as its schema and its REALTIME and OFFLINE table configs describe it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from hybrid.config.batch_ingestion import BatchIngestion
from hybrid.config.cron import Cron
from hybrid.config.json_flavor import JsonFlavor
from hybrid.config.kafka_security import PLAINTEXT, KafkaSecurity
from hybrid.runtime.sentence_repr import shown_as
from hybrid.schema.ingestion import IngestionConfig
from hybrid.schema.schema import FieldSpec, Schema

if TYPE_CHECKING:
    from hybrid.config.connectors import Connector
    from hybrid.config.expectations import Expectation
    from hybrid.formats.avro_messages import AvroMessages
    from hybrid.formats.csv_format import CsvFormat
    from hybrid.formats.registry_messages import RegistryMessages


class Half(StrEnum):
    """The two halves of a logical table; also the table types of Pinot's configs."""

    REALTIME = "REALTIME"
    OFFLINE = "OFFLINE"


class BoundaryMode(StrEnum):
    """What sets the boundary: the moves (`exact`), or Pinot's rule over the last time in the offline half (`pinot`)."""

    EXACT = "exact"
    PINOT = "pinot"


class MergeType(StrEnum):
    """How a move or a merge combines the rows of a bucket. LATEST keeps the winning row of each primary key.

    ROLLUP combines rows that differ only in their metrics.
    """

    CONCAT = "concat"
    DEDUP = "dedup"
    LATEST = "latest"
    ROLLUP = "rollup"


class Aggregation(StrEnum):
    """How a rollup combines the values of a metric. AVG divides two other metrics, which keep its sum and count."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"
    COUNT = "count"
    AVG = "avg"


def kept_for_average(metric: str) -> tuple[str, str]:
    """The names of the metrics that keep the sum and the count of an averaged metric."""
    return f"{metric}_sum", f"{metric}_count"


# The comparison column of a table whose rows are newer when they arrive later: the timestamp that Kafka gives each.
ARRIVED = "_hy_timestamp"
# The connector name of a stream from a table config's streamConfigs; connectors of a DDL have their own names.
CONFIGURED = "kafka"


class MessageFormat(StrEnum):
    """What a message holds: a record, a change (`{"insert": record}` or `{"delete": record}`), or an envelope of
    Debezium.
    """

    RECORD = "raw"
    CHANGE = "insert_delete"
    DEBEZIUM = "debezium"


class Records(StrEnum):
    """How many records a message holds: ONE object, any number of LINES, or an ARRAY of them."""

    ONE = "one"
    LINES = "lines"
    ARRAY = "array"


# The distance between the partition numbers of two topics of a table in names of segments, as in Pinot.
GROUPS_PER_TOPIC = 10_000


@dataclass(frozen=True)
class StreamConfig:
    """The stream of a REALTIME table, and when its consuming segments are sealed.

    `topics` are in a fixed order; of each the `partitions` are read (empty: all). `brokers` is a bootstrap list.
    `offset_reset` is `smallest`, `largest` (Pinot's default), a time in ISO 8601 or a period before the table's
    creation. Thresholds are in rows, bytes (of the message values) and milliseconds since the segment's first commit.
    `connector` is the name of the connector that reads the stream. `codec` decodes messages; None: JSON. With
    `metadata` the key, headers and coordinates of a message are fields of its record (see `hybrid.records.messages`).
    `security` holds for all connections.
    """

    topics: tuple[str, ...]
    brokers: str
    offset_reset: str = "largest"
    flush_rows: int = 5_000_000
    flush_bytes: int = 200 * 1024 * 1024
    flush_ms: int = 6 * 3_600_000
    connector: str = CONFIGURED
    message: MessageFormat = MessageFormat.RECORD
    records: Records = Records.ONE
    flavor: JsonFlavor = JsonFlavor.DEFAULT
    codec: CsvFormat | AvroMessages | RegistryMessages | None = None
    metadata: bool = False
    security: KafkaSecurity = PLAINTEXT
    partitions: tuple[int, ...] = ()

    @property
    def words(self) -> str:
        """The topics as part of a sentence, for messages."""
        names = [f"'{topic}'" for topic in self.topics]
        return f"topic {names[0]}" if len(names) == 1 else f"topics {', '.join(names[:-1])} and {names[-1]}"

    @property
    def holds_several(self) -> bool:
        """Whether one message may become several rows."""
        if self.records is Records.ONE and self.codec is not None:
            from hybrid.formats.csv_format import CsvFormat

            return isinstance(self.codec, CsvFormat)
        return self.records is not Records.ONE

    def group(self, topic: str, partition: int) -> int:
        """The number of a topic's partition among all partitions of the table, as names of segments contain it."""
        return partition if len(self.topics) == 1 else self.topics.index(topic) * GROUPS_PER_TOPIC + partition


class PartitionFunction(StrEnum):
    """Pinot's partition functions: they map a value to a partition."""

    MURMUR = "Murmur"
    MODULO = "Modulo"
    HASH_CODE = "HashCode"
    BYTE_ARRAY = "ByteArray"


@dataclass(frozen=True)
class PartitionedColumn:
    """A column that divides rows into `count` partitions. A null belongs to the partition of the text `null`."""

    name: str
    function: PartitionFunction
    count: int
    null: str


@dataclass(frozen=True)
class BucketConfig:
    """How the rows of closed buckets are merged into segments of OFFLINE; times are in milliseconds.

    Times are rounded down to multiples of `round_ms`, which divides `bucket_ms` (None: they are not rounded).
    `aggregations` names every metric of a rollup. Names of segments begin with `name_prefix` (None: the table's
    name), and have `name_postfix` before their number.
    """

    bucket_ms: int = 86_400_000
    buffer_ms: int = 172_800_000
    merge_type: MergeType = MergeType.CONCAT
    max_records_per_segment: int = 5_000_000
    max_records_per_task: int = 50_000_000
    round_ms: int | None = None
    aggregations: tuple[tuple[str, Aggregation], ...] = ()
    name_prefix: str | None = None
    name_postfix: str | None = None

    @property
    def step_ms(self) -> int:
        """The unit of times in OFFLINE, in milliseconds: they are multiples of it."""
        return self.round_ms or 1

    @property
    def keeps_rows(self) -> bool:
        """Whether every row is kept unchanged."""
        return self.merge_type is MergeType.CONCAT and self.round_ms is None


@dataclass(frozen=True)
class MoveConfig(BucketConfig):
    """The settings of the RealtimeToOfflineSegmentsTask. Without a `schedule` it runs on request only."""

    schedule: Cron | None = None


@dataclass(frozen=True)
class MergeLevel(BucketConfig):
    """A level of the MergeRollupTask: segments inside the same bucket are merged."""

    name: str = ""


@dataclass(frozen=True)
class CompactionConfig:
    """The settings of the UpsertCompactionTask.

    It rewrites a segment that was last written at least `buffer_ms` ago, when at least `rows_min` of its rows, and
    `percent_min` percent, are superseded.
    """

    buffer_ms: int
    percent_min: int
    rows_min: int
    schedule: Cron | None = None


class Strategy(StrEnum):
    """How PARTIAL upsert combines a column's values of one key, in order of arrival; see docs/reference/upsert.md."""

    OVERWRITE = "OVERWRITE"
    FORCE_OVERWRITE = "FORCE_OVERWRITE"
    IGNORE = "IGNORE"
    INCREMENT = "INCREMENT"
    MAX = "MAX"
    MIN = "MIN"
    APPEND = "APPEND"
    UNION = "UNION"


@dataclass(frozen=True)
class Partial:
    """PARTIAL upsert: the strategies of columns by name, and the strategy of all other columns."""

    strategies: Mapping[str, Strategy] = field(default_factory=dict)
    default: Strategy = Strategy.OVERWRITE


@dataclass(frozen=True)
class UpsertConfig:
    """FULL upsert: the row with the highest comparison value of each primary key; or PARTIAL, with `partial`.

    `delete_column` names a BOOLEAN column whose true value marks a delete marker. With `further_comparison_columns`
    each row has a value in one of them or in `comparison_column`, and is compared by that column only.
    `first_wins` is dedup: queries show the row that arrived first, and rows are compared by their arrival only.
    `deleted_keys_ttl` is in the unit of the comparison value. A delete marker that hides nothing may be dropped when
    it is so far behind the highest comparison value; 0: it is kept.
    """

    comparison_column: str
    delete_column: str | None = None
    further_comparison_columns: tuple[str, ...] = ()
    partial: Partial | None = None
    first_wins: bool = False
    deleted_keys_ttl: float = 0

    @property
    def comparison_columns(self) -> tuple[str, ...]:
        """All comparison columns, the first one first."""
        return (self.comparison_column, *self.further_comparison_columns)

    @property
    def folds(self) -> bool:
        """Whether queries combine several rows of a key, so that all of them are kept: docs/adr/0021."""
        return self.partial is not None or bool(self.further_comparison_columns)

    def strategy_of(self, name: str) -> Strategy:
        """The strategy that combines the values of a column; the column must not be part of the primary key."""
        if self.partial is None:
            return Strategy.FORCE_OVERWRITE
        if name in self.comparison_columns:
            return Strategy.OVERWRITE
        return self.partial.strategies.get(name, self.partial.default)


@shown_as("{0.name}")
@dataclass(frozen=True)
class TableSpec:
    """The definition of a logical table. `realtime_doc`, `offline_doc`, `schema_doc` are its documents, after --set.

    `index_columns` are Pinot's inverted indexes: columns that queries look rows up by.
    `ingestion` transforms and filters records: REALTIME's those of messages, OFFLINE's those of the files of jobs.
    `boundary_mode` is the mode in the configs (None: not set; the table's own mode is stored in its OFFLINE half).
    `boundary_lag_ms` is how far mode `pinot` stays behind the last offline time. `batch` is how jobs push to OFFLINE.
    `by_flows`: flows load the rows, and REALTIME has no stream of its own. `connectors` load the rows: the Kafka
    connector is the stream.
    `ignores_case`: fields of records match columns in any case. `ddl_columns`: all columns, or none.
    `expectations` must hold for the rows of every job. `revert_window_ms` is how long replaced data is kept, fixed
    when a half is created. `retention` is how long a half keeps its rows, in ms; a half that keeps them for ever is
    not in it.
    `merge_levels` say how segments of OFFLINE are merged, shortest buckets first. A segment that a move or a merge
    writes holds one partition of each of `partitions`.
    A task whose schedule is None runs on request only.
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
    partitions: tuple[PartitionedColumn, ...] = ()
    compaction: CompactionConfig | None = None
    vacuum_schedule: Cron | None = None
    optimize_schedule: Cron | None = None
    batch: BatchIngestion = field(default_factory=BatchIngestion)
    by_flows: bool = False
    connectors: tuple[Connector, ...] = ()
    ignores_case: bool = False
    ddl_columns: tuple[str, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    schema_doc: dict[str, object] | None = field(default=None, repr=False)
    realtime_doc: dict[str, object] | None = field(default=None, repr=False)
    offline_doc: dict[str, object] | None = field(default=None, repr=False)
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
    def folds(self) -> bool:
        """Whether all rows of a key are kept, and queries combine them."""
        return self.upsert is not None and self.upsert.folds

    @property
    def picks_winners(self) -> bool:
        """Whether queries show one stored row of each key, so that its other rows may be dropped."""
        return self.upsert is not None and not self.upsert.folds

    def group(self, topic: str, partition: int) -> int:
        """As `StreamConfig.group`; the partition's own number on a table without a stream, which flows fill."""
        return self.stream.group(topic, partition) if self.stream is not None else partition

    def holds_several(self, half: Half) -> bool:
        """Whether one message of the stream, or one record of the OFFLINE half's input, may become several rows."""
        config, stream = self.ingestion.get(half), self.stream if half is Half.REALTIME else None
        is_unnested = config is not None and config.complex_types is not None and bool(config.complex_types.unnest)
        return is_unnested or (stream is not None and stream.holds_several)

    @property
    def column_order(self) -> tuple[str, ...]:
        """The columns in the order in which a DDL names them; a schema keeps the time column in a list of its own."""
        return self.ddl_columns or self.schema.column_names

    @property
    def nets_deletes(self) -> bool:
        """Whether each delete removes one equal row: rows without a key, from a source of inserts and deletes."""
        by_stream = self.stream is not None and self.stream.message is not MessageFormat.RECORD
        return not self.primary_key and (by_stream or any(connector.says_deletes for connector in self.connectors))

    @property
    def half_names(self) -> list[str]:
        """The names of the halves, REALTIME first."""
        return [half.value for half in sorted(self.halves, reverse=True)]

    @property
    def step_ms(self) -> int:
        """The longest period, in milliseconds, to which a task rounds times."""
        return max((config.step_ms for config in (self.move, *self.merge_levels) if config is not None), default=1)

    @property
    def first_boundary_mode(self) -> BoundaryMode:
        """The mode that a table of this definition is created with.

        `exact` where a task of the table moves rows to OFFLINE; `pinot` where outside jobs push to it.
        """
        if self.boundary_mode is not None:
            return self.boundary_mode
        return BoundaryMode.PINOT if self.is_pushed and len(self.halves) == len(Half) else BoundaryMode.EXACT

    @property
    def is_pushed(self) -> bool:
        """Whether only outside jobs write offline rows, so that nothing maintains a frontier."""
        return self.move is None and not (self.by_flows or self.connectors)
