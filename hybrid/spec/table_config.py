"""A logical table as its users configured it: schema plus the REALTIME and OFFLINE table configs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hybrid.spec.cron import Cron
from hybrid.spec.schema import FieldSpec, Schema


class Half(StrEnum):
    """The two halves of a logical table; also the table types of Pinot's configs."""

    REALTIME = "REALTIME"
    OFFLINE = "OFFLINE"


class MergeType(StrEnum):
    """How the move merges the rows of one bucket. LATEST keeps the winning row of each primary key."""

    CONCAT = "concat"
    DEDUP = "dedup"
    LATEST = "latest"


@dataclass(frozen=True)
class StreamConfig:
    """Where live rows come from and when a consuming segment is sealed.

    `brokers` is a bootstrap list; `offset_reset` is `smallest` or `largest` (Pinot's default); thresholds are in
    rows, bytes (of the message values) and milliseconds since the segment's first commit.
    """

    topic: str
    brokers: str
    offset_reset: str = "largest"
    flush_rows: int = 5_000_000
    flush_bytes: int = 200 * 1024 * 1024
    flush_ms: int = 6 * 3_600_000


@dataclass(frozen=True)
class MoveConfig:
    """The RealtimeToOfflineSegmentsTask's settings; times in milliseconds. Without `schedule` it runs when asked to."""

    bucket_ms: int = 86_400_000
    buffer_ms: int = 172_800_000
    merge_type: MergeType = MergeType.CONCAT
    max_records_per_segment: int = 5_000_000
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
    """A logical table. `realtime_doc`, `offline_doc`, `schema_doc` are the documents as given (after --set)."""

    name: str
    schema: Schema
    halves: frozenset[Half]
    time_column: str | None
    stream: StreamConfig | None
    move: MoveConfig | None
    upsert: UpsertConfig | None
    sort_columns: tuple[str, ...] = ()
    null_handling: bool = False
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
