"""Reads what belongs to merging rows: Pinot's upsertConfig and the realtime-to-offline task."""

from __future__ import annotations

from collections.abc import Iterator

from hybrid.spec.cron import Cron
from hybrid.spec.document import Section, shown
from hybrid.spec.named_column import column
from hybrid.spec.partial_json import (
    COMPARABLE,
    DEFAULT_STRATEGY,
    STRATEGIES,
    check_several,
    parse_partial,
)
from hybrid.spec.period import parse_period
from hybrid.spec.schema import Schema
from hybrid.spec.table_config import ARRIVED, BucketConfig, MergeType, MoveConfig, UpsertConfig
from hybrid.spec.types import DataType

MOVE_TASK = "RealtimeToOfflineSegmentsTask"

_UPSERT_KEYS = {
    "mode", "comparisonColumn", "comparisonColumns", "deleteRecordColumn",
    # How Pinot's servers keep their key maps; the answer is the same without.
    "hashFunction", "enableSnapshot", "snapshot", "enablePreload", "preload", "consistencyMode", "metadataManagerClass",
    "metadataManagerConfigs", "upsertViewRefreshIntervalMs", "newSegmentTrackingTimeMs",
    STRATEGIES, DEFAULT_STRATEGY,
}  # fmt: skip
_MOVE_KEYS = {
    "bucketTimePeriod", "bufferTimePeriod", "mergeType", "maxNumRecordsPerSegment", "maxNumRecordsPerTask",
    "roundBucketTimePeriod", "schedule",
    # How Pinot's minions divide the work.
    "tableMaxNumTasks", "taskConcurrencyPerInstance", "minionInstanceTag", "pushMode",
    "allowDownloadFromServer", "enableReplaceSegments",
}  # fmt: skip


def parse_upsert(section: Section, schema: Schema, time_column: str | None, null_handling: bool) -> UpsertConfig | None:
    """FULL or PARTIAL upsert, or None for an append table."""
    if not section.doc:
        return None
    mode = section.choice("mode", ("FULL", "PARTIAL", "NONE"))
    if mode == "NONE":
        return None
    if not schema.primary_key:
        hint = f'Add "primaryKeyColumns": [...] to the schema {schema.name}.'
        section.fail("mode", "upsert needs a primary key, and the schema has none.", hint=hint)
    first, *others = _comparison_columns(section, schema, time_column)
    if others:
        check_several(section, schema, (first, *others), time_column, null_handling)
    partial = None
    if mode == "PARTIAL":
        partial = parse_partial(section, schema, (first, *others), null_handling)
    return UpsertConfig(first, _delete_column(section, schema), tuple(others), partial)


def upsert_warnings(section: Section) -> Iterator[str]:
    """One warning for each key that has no effect. What is off says nothing."""
    return (warning for key in section.doc if section.has(key) for warning in _one(section, key, _UPSERT_KEYS))


def parse_move(section: Section, upsert: bool) -> MoveConfig:
    """The settings of the realtime-to-offline task."""
    return MoveConfig(**vars(parse_buckets(section, upsert)), schedule=parse_schedule(section))


def parse_buckets(section: Section, upsert: bool) -> BucketConfig:
    """How the rows of buckets are merged, as Pinot's tasks write it."""
    default = BucketConfig()
    if section.has("roundBucketTimePeriod"):
        message = f"{shown(section.doc['roundBucketTimePeriod'])} cannot be honoured yet: times are not rounded."
        section.fail("roundBucketTimePeriod", f"{message} Remove the key.")
    return BucketConfig(
        bucket_ms=_period(section, "bucketTimePeriod", default.bucket_ms, low=1),
        buffer_ms=_period(section, "bufferTimePeriod", default.buffer_ms, low=0),
        merge_type=_merge_type(section, upsert),
        max_records_per_segment=section.whole("maxNumRecordsPerSegment", default.max_records_per_segment, low=1),
        max_records_per_task=section.whole("maxNumRecordsPerTask", default.max_records_per_task, low=1),
    )


def move_warnings(section: Section) -> Iterator[str]:
    """One warning for each key that has no effect."""
    yield from section.unknown(_MOVE_KEYS)


def _one(section: Section, key: str, known: set[str]) -> Iterator[str]:
    return Section({key: section.doc[key]}, section.source, section.path).unknown(known)


def _comparison_columns(section: Section, schema: Schema, time_column: str | None) -> tuple[str, ...]:
    key = "comparisonColumns" if section.has("comparisonColumns") else "comparisonColumn"
    names = section.texts(key) or ((time_column,) if time_column else ())
    if not names:
        section.fail(key, "is missing: without a time column, upsert needs to know which row is newer.")
    if names == (ARRIVED,):
        return names
    for field in [column(section, key, name, schema) for name in names]:
        if field.data_type not in COMPARABLE or not field.single_value:
            message = f"'{field.name}' is {field.data_type} and has no order. Name a number, TIMESTAMP or STRING."
            section.fail(key, message)
    return tuple(dict.fromkeys(names))


def _delete_column(section: Section, schema: Schema) -> str | None:
    key = "deleteRecordColumn"
    if not section.has(key):
        return None
    field = column(section, key, section.text(key), schema)
    if field.data_type is not DataType.BOOLEAN or not field.single_value:
        section.fail(key, f"'{field.name}' is {field.data_type}; a delete marker is a BOOLEAN column with one value.")
    return field.name


def _merge_type(section: Section, upsert: bool) -> MergeType:
    if not section.has("mergeType"):
        return MergeType.LATEST if upsert else MergeType.CONCAT
    text = section.text("mergeType").lower()
    if text not in (MergeType.CONCAT, MergeType.DEDUP):
        section.fail("mergeType", f"'{text}' is not built yet; there are concat and dedup.")
    return MergeType(text)


def tasks_of(top: Section) -> Section:
    """The tasks of a table config, by type."""
    return top.section("task").section("taskTypeConfigsMap")


def parse_schedule(section: Section) -> Cron | None:
    """When a task runs by itself."""
    key = "schedule"
    return Cron.parse(section.doc[key], section.source, section.at(key)) if section.has(key) else None


def _period(section: Section, key: str, default: int, low: int) -> int:
    value = section.doc.get(key)
    if value is None:
        return default
    millis = parse_period(value, section.source, section.at(key))
    if millis < low:
        section.fail(key, f"{shown(value)} is too short: a bucket has a length. Write it like '2h'.")
    return millis
