"""Reads the settings of Pinot's realtime-to-offline task, and the bucket settings that it shares with merges."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hybrid.config.rollup_json import AGGREGATION_SUFFIX, parse_aggregations, rolled_up
from hybrid.config.table_config import Aggregation, BucketConfig, MergeType, MoveConfig
from hybrid.config.upsert_json import parse_schedule
from hybrid.schema.document import Section, shown
from hybrid.schema.period import parse_period
from hybrid.schema.rounding import why_not_rounded
from hybrid.schema.schema import Schema

ROUNDING = "roundBucketTimePeriod"
NAME_PREFIX, NAME_POSTFIX = "segmentNamePrefix", "segmentNamePostfix"
_MOVE_KEYS = {
    "bucketTimePeriod", "bufferTimePeriod", "mergeType", "maxNumRecordsPerSegment", "maxNumRecordsPerTask",
    ROUNDING, NAME_PREFIX, NAME_POSTFIX, "schedule",
    # How Pinot's minions divide the work.
    "tableMaxNumTasks", "taskConcurrencyPerInstance", "minionInstanceTag", "pushMode",
    "allowDownloadFromServer", "enableReplaceSegments",
}  # fmt: skip
# A prefix and a postfix, with the times and a number, stay below the 200 characters that a segment's name may have.
_NAME_PART = re.compile(r"[A-Za-z0-9_-]{1,60}")


@dataclass(frozen=True)
class TableRows:
    """What the task settings of a table depend on: its schema, its time column, and whether it is an upsert table."""

    schema: Schema
    time_column: str | None
    upsert: bool


def parse_move(section: Section, rows: TableRows) -> MoveConfig:
    """The settings of the realtime-to-offline task."""
    aggregations = parse_aggregations(section, rows.schema) if rolls_up(section) else {}
    buckets = parse_buckets(section, rows, aggregations)
    return MoveConfig(**vars(buckets), schedule=parse_schedule(section))


def parse_buckets(section: Section, rows: TableRows, given: Mapping[str, Aggregation]) -> BucketConfig:
    """How the rows of buckets are merged, in the keys of Pinot's tasks; `given` are the aggregations that they name."""
    default = BucketConfig()
    bucket_ms = _period(section, "bucketTimePeriod", default.bucket_ms, low=1)
    merge_type = _merge_type(section, rows)
    return BucketConfig(
        bucket_ms=bucket_ms,
        buffer_ms=_period(section, "bufferTimePeriod", default.buffer_ms, low=0),
        merge_type=merge_type,
        max_records_per_segment=section.whole("maxNumRecordsPerSegment", default.max_records_per_segment, low=1),
        max_records_per_task=section.whole("maxNumRecordsPerTask", default.max_records_per_task, low=1),
        round_ms=_rounding(section, rows, bucket_ms),
        aggregations=rolled_up(section, rows.schema, given) if merge_type is MergeType.ROLLUP else (),
        name_prefix=_name_part(section, NAME_PREFIX),
        name_postfix=_name_part(section, NAME_POSTFIX),
    )


def move_warnings(section: Section) -> Iterator[str]:
    """One warning for each key that has no effect."""
    rest = {key: value for key, value in section.doc.items() if not key.endswith(AGGREGATION_SUFFIX)}
    yield from Section(rest, section.source, section.path).unknown(_MOVE_KEYS)
    if not rolls_up(section):
        yield from (no_effect(section, key, "mergeType 'rollup'") for key in section.doc if key not in rest)


def rolls_up(section: Section) -> bool:
    """Whether a task, or a level of a task, combines rows."""
    return section.has("mergeType") and section.text("mergeType").lower() == MergeType.ROLLUP


def no_effect(section: Section, key: str, what: str) -> str:
    """The warning for a key that counts beside another setting only."""
    return f"{section.source}: {section.at(key)}: has no effect without {what}."


def _merge_type(section: Section, rows: TableRows) -> MergeType:
    if not section.has("mergeType"):
        return MergeType.LATEST if rows.upsert else MergeType.CONCAT
    merge_types = (MergeType.CONCAT, MergeType.DEDUP, MergeType.ROLLUP)
    merge_type = MergeType(section.choice("mergeType", merge_types))
    if rows.upsert and merge_type is MergeType.ROLLUP:
        message = "'rollup' cannot be honoured on an upsert table: of the rows of a key one is shown, and none are "
        section.fail("mergeType", f"{message}combined. Remove the key: the latest row of each key is kept.")
    return merge_type


def _rounding(section: Section, rows: TableRows, bucket_ms: int) -> int | None:
    if not section.has(ROUNDING):
        return None
    text = shown(section.doc[ROUNDING])
    period_ms = _period(section, ROUNDING, 0, low=1)
    field = rows.schema.find(rows.time_column) if rows.time_column else None
    if field is None or field.time_format is None:
        section.fail(ROUNDING, f"{text} has nothing to round: segmentsConfig names no timeColumnName. Remove the key.")
    if rows.upsert:
        message = f"{text} cannot be honoured on an upsert table: which row of a key is newer goes by its own values."
        section.fail(ROUNDING, f"{message} Remove the key.")
    if bucket_ms % period_ms:
        message = f"{text} does not divide the bucketTimePeriod: a rounded time would lie in two buckets."
        section.fail(ROUNDING, f"{message} Write one of which a bucket has a whole number.")
    why = why_not_rounded(field.time_format, period_ms)
    if why is not None:
        section.fail(ROUNDING, f"{text} cannot be honoured: the time column '{field.name}' {why}.")
    return period_ms


def _name_part(section: Section, key: str) -> str | None:
    if not section.has(key):
        return None
    text = section.text(key)
    if not _NAME_PART.fullmatch(text):
        section.fail(key, f"{shown(text)} is refused: in names are letters, digits, '_' and '-', here at most 60.")
    return text


def _period(section: Section, key: str, default: int, low: int) -> int:
    value = section.doc.get(key)
    if value is None:
        return default
    millis = parse_period(value, section.source, section.at(key))
    if millis < low:
        section.fail(key, f"{shown(value)} is too short: it is a length of time. Write it like '2h'.")
    return millis
