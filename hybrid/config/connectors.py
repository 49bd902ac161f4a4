"""What brings rows into a table: Feldera's connectors, as values. Pure: nothing here opens anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from hybrid.config.kafka_security import PLAINTEXT, KafkaSecurity
from hybrid.errors import DataError
from hybrid.formats.registry_messages import RegistryMessages
from hybrid.schema.references import resolve
from hybrid.schema.secrets import without_login


class StartKind(StrEnum):
    """Where a Kafka connector begins. AFTER_HISTORY is ours: where the connectors it starts after have ended."""

    EARLIEST = "earliest"
    LATEST = "latest"
    AFTER_HISTORY = "after_history"
    TIMESTAMP = "timestamp"
    OFFSETS = "offsets"


@dataclass(frozen=True)
class KafkaStart:
    """Where a Kafka connector begins: `timestamp_ms` since 1970 of TIMESTAMP, `offsets` of OFFSETS.

    Offsets are by (topic, partition). That every partition of the real topic has one is checked where it is read.
    """

    kind: StartKind = StartKind.LATEST
    timestamp_ms: int | None = None
    offsets: Mapping[tuple[str, int], int] = field(default_factory=dict)


@dataclass(frozen=True)
class KafkaInput:
    """`kafka_input`. `partitions` are those that are read; empty: all. `properties` are librdkafka's, as text.

    `properties` holds what a connection takes (security, SASL, SSL, client id), nothing that only tunes.
    """

    brokers: str
    topics: tuple[str, ...]
    partitions: tuple[int, ...] = ()
    start: KafkaStart = KafkaStart()
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    security: KafkaSecurity = PLAINTEXT

    @property
    def ends(self) -> bool:
        """Whether it comes to an end by itself, so that others can start after it."""
        return False


class DeltaMode(StrEnum):
    """How much of a Delta table is read: one version of it, its changes, or both in this order."""

    SNAPSHOT = "snapshot"
    FOLLOW = "follow"
    SNAPSHOT_AND_FOLLOW = "snapshot_and_follow"


class ChangeFeed(StrEnum):
    """How what a version did to rows is read: from its change data where there is some, which may be required, or not.

    Without it from the files that it added and removed. The rows are the same.
    """

    AUTO = "auto"
    REQUIRE = "require"
    OFF = "off"


@dataclass(frozen=True)
class DeltaInput:
    """`delta_table_input`. Without `version` and `datetime_ms` (since 1970) the newest version is read.

    Changes are those after that version, up to and with `end_version`. `filter` and `snapshot_filter` (snapshot only)
    are conditions in SQL. `storage_options` are those of the object store (`aws_region`), as text. `change_feed` is
    None where the connector does not say.
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
        """The object store's options with what their references refer to. DataError where that is not there."""
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
        """Whether it comes to an end by itself, so that others can start after it."""
        return not self.follows or self.end_version is not None


@dataclass(frozen=True)
class FileInput:
    """`file_input`: a file, a folder or a glob pattern; with `follow` also what is added later."""

    path: str
    follow: bool = False

    @property
    def ends(self) -> bool:
        """Whether it comes to an end by itself, so that others can start after it."""
        return not self.follow


class DatagenStrategy(StrEnum):
    """How a generated field comes to its next value."""

    INCREMENT = "increment"
    UNIFORM = "uniform"
    ZIPF = "zipf"


@dataclass(frozen=True)
class DatagenField:
    """One generated field: the next or any of `values`, else of the half-open `low` to `high` (None: the type's own).

    `scale` multiplies a value; `null_percentage` of the rows have none, 0 to 100. `exponent` is that of ZIPF. `value`
    is how the elements of a list, or the bytes of BYTES, are made; the range is that of their count then.
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
    """A run of generated rows: `limit` of them (None: without end), `rate` in a second (None: as fast as it goes).

    A column that `fields` does not name is generated by a DatagenField of defaults.
    """

    limit: int | None = None
    rate: int | None = None
    fields: Mapping[str, DatagenField] = field(default_factory=dict)


@dataclass(frozen=True)
class Datagen:
    """`datagen`: rows made up by plans, one after the other. The same `seed` makes the same rows."""

    plans: tuple[DatagenPlan, ...] = (DatagenPlan(),)
    seed: int | None = None

    @property
    def ends(self) -> bool:
        """Whether it comes to an end by itself, so that others can start after it."""
        return all(plan.limit is not None for plan in self.plans)

    @property
    def is_paced(self) -> bool:
        """Whether rows come in the course of time."""
        return any(plan.rate is not None for plan in self.plans)


Transport = KafkaInput | DeltaInput | FileInput | Datagen


class UpdateFormat(StrEnum):
    """What a JSON record is: a row to insert, one of `{"insert": row}` and `{"delete": row}`, or an envelope."""

    RAW = "raw"
    INSERT_DELETE = "insert_delete"
    DEBEZIUM = "debezium"


class JsonFlavor(StrEnum):
    """How a record writes what JSON has no type for."""

    DEFAULT = "default"
    DEBEZIUM_MYSQL = "debezium_mysql"
    DEBEZIUM_POSTGRES = "debezium_postgres"


@dataclass(frozen=True)
class JsonFormat:
    """JSON. `array`: records come in lists. `single_line`: a record never spans lines (`lines`: single)."""

    update_format: UpdateFormat = UpdateFormat.INSERT_DELETE
    array: bool = False
    single_line: bool = False
    flavor: JsonFlavor = JsonFlavor.DEFAULT


@dataclass(frozen=True)
class ConnectorCsvFormat:
    """CSV, its columns in the order of the table. `headers`: the first line names columns and is no row."""

    delimiter: str = ","
    headers: bool = False
    quote: str = '"'
    escape: str | None = None


@dataclass(frozen=True)
class ParquetFormat:
    """Parquet, its columns by name."""


@dataclass(frozen=True)
class AvroFormat:
    """Avro by the schema in `text`. `bare`: no registry's mark and number stand before a record.

    With `registry` the writer's schema is fetched by that number, and `text`, where it is not empty, is the reader's.
    """

    text: str
    bare: bool = False
    registry: RegistryMessages | None = None


Format = JsonFormat | ConnectorCsvFormat | ParquetFormat | AvroFormat


@dataclass(frozen=True)
class Connector:
    """One connector. `name` is its identity and does not change once its table is created.

    `start_after` are labels: it starts when every connector that carries one of them has ended. `format` is None where
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
        """Whether it comes to an end by itself, so that others can start after it."""
        return self.transport.ends

    @property
    def is_followed(self) -> bool:
        """Whether it may bring more history later than when it starts."""
        transport = self.transport
        if isinstance(transport, DeltaInput):
            return transport.follows
        if isinstance(transport, FileInput):
            return transport.follow
        return isinstance(transport, Datagen) and transport.is_paced

    @property
    def says_deletes(self) -> bool:
        """Whether it says that rows of its history go too: each takes an equal one away where there is no key."""
        return isinstance(self.transport, DeltaInput) and self.transport.change_feed is not None

    @property
    def can_delete(self) -> bool:
        """Whether it may bring deletes: records that can say so, or the changes of a Delta table."""
        if isinstance(self.transport, DeltaInput):
            return self.transport.follows
        return isinstance(self.format, JsonFormat) and self.format.update_format is not UpdateFormat.RAW


def live_connector(connectors: Iterable[Connector]) -> Connector | None:
    """The one that reads Kafka: a table's stream; None when there is none."""
    return next((one for one in connectors if isinstance(one.transport, KafkaInput)), None)


def waits_for(connectors: Iterable[Connector]) -> dict[str, frozenset[str]]:
    """By name of each connector: the names of those that must have ended before it starts."""
    known = tuple(connectors)
    return {
        one.name: frozenset(other.name for other in known if not set(one.start_after).isdisjoint(other.labels))
        for one in known
    }


def find_cycle(waits: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    """The first cycle in what `waits_for` gives, its first name again at its end; empty when there is none."""
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
