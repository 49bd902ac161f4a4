"""The connectors of a table, as in Feldera, as values. Pure: nothing here opens a file or connection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from hybrid.config.json_flavor import JsonFlavor
from hybrid.config.kafka_security import PLAINTEXT, KafkaSecurity
from hybrid.errors import DataError
from hybrid.formats.registry_messages import RegistryMessages
from hybrid.runtime.sentence_repr import shown_as
from hybrid.schema.references import resolve
from hybrid.schema.secrets import without_login


class StartKind(StrEnum):
    """The kind of a Kafka connector's start position. AFTER_HISTORY, which Feldera lacks, is where the connectors that
    it starts after have ended.
    """

    EARLIEST = "earliest"
    LATEST = "latest"
    AFTER_HISTORY = "after_history"
    TIMESTAMP = "timestamp"
    OFFSETS = "offsets"


@dataclass(frozen=True)
class KafkaStart:
    """The start position of a Kafka connector: `timestamp_ms` since 1970 of TIMESTAMP, `offsets` of OFFSETS.

    Offsets are by (topic, partition). Whether every partition of the topic has an offset is checked when it is read.
    """

    kind: StartKind = StartKind.LATEST
    timestamp_ms: int | None = None
    offsets: Mapping[tuple[str, int], int] = field(default_factory=dict)


@dataclass(frozen=True)
class KafkaInput:
    """`kafka_input`. Of the topics, `partitions` are read; empty: all.

    `properties` are librdkafka's for connections (security, SASL, SSL, client id), as text, without those for tuning.
    """

    brokers: str
    topics: tuple[str, ...]
    partitions: tuple[int, ...] = ()
    start: KafkaStart = KafkaStart()
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    security: KafkaSecurity = PLAINTEXT

    @property
    def ends(self) -> bool:
        """Whether it ends by itself, so that other connectors can start after it."""
        return False


class DeltaMode(StrEnum):
    """The part of a Delta table that is read: one version, its changes, or first the one and then the other."""

    SNAPSHOT = "snapshot"
    FOLLOW = "follow"
    SNAPSHOT_AND_FOLLOW = "snapshot_and_follow"


class ChangeFeed(StrEnum):
    """Whether changes of rows are read from the change data of a version: where it has some, always, or never.

    Without change data they are read from the files that the version added and removed. The rows are the same.
    """

    AUTO = "auto"
    REQUIRE = "require"
    OFF = "off"


@dataclass(frozen=True)
class DeltaInput:
    """`delta_table_input`. Without `version` and `datetime_ms` (since 1970) the newest version is read.

    Changes are read from the next version on, up to and including `end_version`. `filter` and `snapshot_filter`
    (snapshot only) are conditions in SQL. `storage_options` are the object store's options (`aws_region`), as text.
    `change_feed` is None where the config does not set it.
    """

    uri: str
    mode: DeltaMode
    version: int | None = None
    datetime_ms: int | None = None
    end_version: int | None = None
    filter: str | None = None
    snapshot_filter: str | None = None
    timestamp_column: str | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    change_feed: ChangeFeed | None = None

    @property
    def address(self) -> str:
        """The table's address for messages, without a login in it."""
        return without_login(self.uri)

    def resolved_options(self) -> dict[str, str]:
        """The object store's options with references resolved. DataError for a reference to a missing value."""
        return {
            key: resolve(value, f"{key} of the connector to {self.address}", DataError)
            for key, value in self.storage_options.items()
        }

    @property
    def reads_snapshot(self) -> bool:
        """Whether the rows of one version are read."""
        return self.mode is not DeltaMode.FOLLOW

    @property
    def follows(self) -> bool:
        """Whether changes are read."""
        return self.mode is not DeltaMode.SNAPSHOT

    @property
    def ends(self) -> bool:
        """Whether it ends by itself, so that other connectors can start after it."""
        return not self.follows or self.end_version is not None


@dataclass(frozen=True)
class FileInput:
    """`file_input`: a file, a folder or a glob pattern; with `follow` also data that is added later."""

    path: str
    follow: bool = False

    @property
    def ends(self) -> bool:
        """Whether it ends by itself, so that other connectors can start after it."""
        return not self.follow


class DatagenStrategy(StrEnum):
    """How the next value of a generated field is chosen."""

    INCREMENT = "increment"
    UNIFORM = "uniform"
    ZIPF = "zipf"


@dataclass(frozen=True)
class DatagenField:
    """A generated field: a value from `values`, else from the half-open range `low` to `high` (None: the type's range).

    `scale` multiplies a value. `null_percentage`, 0 to 100, is the share of nulls. `exponent` is that of ZIPF. `value`
    generates the elements of a list, or the bytes of BYTES; the range is then that of their count.
    """

    strategy: DatagenStrategy = DatagenStrategy.INCREMENT
    low: int | float | str | None = None
    high: int | float | str | None = None
    scale: int | float = 1
    values: tuple[object, ...] | None = None
    null_percentage: int = 0
    exponent: float = 1.0
    value: DatagenField | None = None


@dataclass(frozen=True)
class DatagenPlan:
    """A sequence of generated rows: `limit` rows (None: endless), `rate` rows a second (None: as fast as possible).

    A column that `fields` does not name is generated by a default DatagenField.
    """

    limit: int | None = None
    rate: int | None = None
    fields: Mapping[str, DatagenField] = field(default_factory=dict)


@dataclass(frozen=True)
class Datagen:
    """`datagen`: rows generated by plans, one after the other. The same `seed` generates the same rows."""

    plans: tuple[DatagenPlan, ...] = (DatagenPlan(),)
    seed: int | None = None

    @property
    def ends(self) -> bool:
        """Whether it ends by itself, so that other connectors can start after it."""
        return all(plan.limit is not None for plan in self.plans)

    @property
    def is_paced(self) -> bool:
        """Whether rows are generated at a limited rate."""
        return any(plan.rate is not None for plan in self.plans)


Transport = KafkaInput | DeltaInput | FileInput | Datagen


class UpdateFormat(StrEnum):
    """The form of a JSON record: a row, `{"insert": row}` or `{"delete": row}`, or an envelope of Debezium."""

    RAW = "raw"
    INSERT_DELETE = "insert_delete"
    DEBEZIUM = "debezium"


@dataclass(frozen=True)
class JsonFormat:
    """JSON. `array`: records are in lists. `single_line`: a record never spans lines (`lines`: single)."""

    update_format: UpdateFormat = UpdateFormat.INSERT_DELETE
    array: bool = False
    single_line: bool = False
    flavor: JsonFlavor = JsonFlavor.DEFAULT


@dataclass(frozen=True)
class ConnectorCsvFormat:
    """CSV with the columns in the order of the table. `headers`: the first line names columns and is no row."""

    delimiter: str = ","
    headers: bool = False
    quote: str = '"'
    escape: str | None = None


@dataclass(frozen=True)
class ParquetFormat:
    """Parquet, read by names of columns."""


@dataclass(frozen=True)
class AvroFormat:
    """Avro by the schema in `text`. `bare`: a record has no prefix with the registry's magic byte and schema id.

    With `registry` the writer's schema is fetched by that id, and `text`, where it is not empty, is the reader's.
    """

    text: str
    bare: bool = False
    registry: RegistryMessages | None = None


Format = JsonFormat | ConnectorCsvFormat | ParquetFormat | AvroFormat


@shown_as("{0.name}: {0.transport}")
@dataclass(frozen=True)
class Connector:
    """A connector. `name` is its identity and does not change once its table is created.

    `start_after` are labels: it starts when every connector with one of them has ended. `format` is None where
    the transport has its own (Delta, datagen). `max_batch_size`, `max_queued_records` count records.
    """

    name: str
    transport: Transport
    format: Format | None = None
    labels: tuple[str, ...] = ()
    start_after: tuple[str, ...] = ()
    paused: bool = False
    max_batch_size: int | None = None
    max_queued_records: int | None = None

    @property
    def ends(self) -> bool:
        """Whether it ends by itself, so that other connectors can start after it."""
        return self.transport.ends

    @property
    def is_followed(self) -> bool:
        """Whether it may load more history after its start."""
        transport = self.transport
        if isinstance(transport, DeltaInput):
            return transport.follows
        if isinstance(transport, FileInput):
            return transport.follow
        return isinstance(transport, Datagen) and transport.is_paced

    @property
    def says_deletes(self) -> bool:
        """Whether its history includes deletes, each of which removes one equal row on a table without a key."""
        return isinstance(self.transport, DeltaInput) and self.transport.change_feed is not None

    @property
    def can_delete(self) -> bool:
        """Whether its input may contain deletes: JSON changes, or the changes of a Delta table."""
        if isinstance(self.transport, DeltaInput):
            return self.transport.follows
        return isinstance(self.format, JsonFormat) and self.format.update_format is not UpdateFormat.RAW


def live_connector(connectors: Iterable[Connector]) -> Connector | None:
    """The connector that reads Kafka, which is the table's stream; None when there is none."""
    return next((connector for connector in connectors if isinstance(connector.transport, KafkaInput)), None)


def waits_for(connectors: Iterable[Connector]) -> dict[str, frozenset[str]]:
    """By name of each connector: the names of the connectors that must have ended before it starts."""
    all_connectors = tuple(connectors)
    return {
        connector.name: frozenset(
            other.name for other in all_connectors if not set(connector.start_after).isdisjoint(other.labels)
        )
        for connector in all_connectors
    }


def find_cycle(waits: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    """The first cycle in the result of `waits_for`, with its first name repeated at the end; empty without a cycle."""
    done: set[str] = set()
    for start in waits:
        path = [start]
        while path:
            following = next((name for name in sorted(waits[path[-1]]) if name not in done), None)
            if following is None:
                done.add(path.pop())
            elif following in path:
                return (*path[path.index(following) :], following)
            else:
                path.append(following)
    return ()
