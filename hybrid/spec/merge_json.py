"""Reads Pinot's MergeRollupTask: how small segments of OFFLINE are merged, in levels of longer and longer buckets.

A level's keys begin with its name: `1day.bucketTimePeriod`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from hybrid.spec.batch_ingestion import IngestionType, parse_batch_ingestion
from hybrid.spec.cron import Cron
from hybrid.spec.document import Section, shown
from hybrid.spec.table_config import MergeLevel
from hybrid.spec.upsert_json import parse_buckets, parse_schedule, tasks_of

MERGE_TASK = "MergeRollupTask"
_REQUIRED = ("bucketTimePeriod", "bufferTimePeriod")
_LEVEL_KEYS = {
    *_REQUIRED, "mergeType", "roundBucketTimePeriod", "maxNumRecordsPerSegment", "maxNumRecordsPerTask",
    # How Pinot divides the work among minions.
    "maxNumParallelBuckets",
}  # fmt: skip
_TASK_KEYS = {
    "schedule",
    # How Pinot's minions divide the work, and name and push what they make.
    "mode", "tableMaxNumTasks", "taskConcurrencyPerInstance", "minionInstanceTag", "pushMode",
    "allowDownloadFromServer", "enableReplaceSegments",
}  # fmt: skip
_EXAMPLE = 'Write "1day.bucketTimePeriod": "1d", "1day.bufferTimePeriod": "1d", for example.'


def parse_merges(offline: Section | None, upsert: bool, time_column: str | None) -> tuple[MergeLevel, ...]:
    """The levels of the OFFLINE config's MergeRollupTask, shortest buckets first; none without the task."""
    task = _task(offline)
    if offline is None or task is None:
        return ()
    if time_column is None:
        task.fail("timeColumnName", "is missing in segmentsConfig: segments are merged by buckets of time.")
    if parse_batch_ingestion(offline).type is IngestionType.REFRESH:
        tasks_of(offline).fail(MERGE_TASK, "cannot run on a REFRESH table: each push replaces segments by their names.")
    levels = [_level(name, section, upsert) for name, section in _levels(task).items()]
    if not levels:
        tasks_of(offline).fail(MERGE_TASK, f"names no level. {_EXAMPLE}")
    return tuple(sorted(levels, key=lambda level: (level.bucket_ms, level.name)))


def parse_merge_schedule(offline: Section | None) -> Cron | None:
    """When a server merges segments; None: only when it is asked to."""
    task = _task(offline)
    return None if task is None else parse_schedule(task)


def merge_warnings(task: Section) -> Iterator[str]:
    """One warning for each key that has no effect."""
    for key in task.doc:
        if "." not in key:
            yield from Section({key: task.doc[key]}, task.source, task.path).unknown(_TASK_KEYS)
    for section in _levels(task).values():
        rest = {key: value for key, value in section.doc.items() if not key.endswith(".aggregationType")}
        yield from Section(rest, section.source, section.path).unknown(_LEVEL_KEYS)


def _task(offline: Section | None) -> Section | None:
    place = tasks_of(offline) if offline is not None else None
    return place.section(MERGE_TASK) if place is not None and MERGE_TASK in place.doc else None


def _levels(task: Section) -> dict[str, Section]:
    found: defaultdict[str, dict[str, object]] = defaultdict(dict)
    for key, value in task.doc.items():
        name, dot, rest = key.partition(".")
        if dot:
            found[name][rest] = value
    return {name: Section(doc, task.source, task.at(name)) for name, doc in found.items()}


def _level(name: str, section: Section, upsert: bool) -> MergeLevel:
    for key in _REQUIRED:
        if not section.has(key):
            section.fail(key, f"is missing. {_EXAMPLE}")
    for key in section.doc:
        if key.endswith(".aggregationType"):
            section.fail(key, f"{shown(section.doc[key])} cannot be honoured yet: rows are not rolled up. Remove it.")
    return MergeLevel(**vars(parse_buckets(section, upsert)), name=name)
