"""Reads Pinot's MergeRollupTask, which merges small segments of OFFLINE in levels of longer and longer buckets.

A level's keys begin with its name: `1day.bucketTimePeriod`. Aggregations hold for all levels:
`amount.aggregationType`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from hybrid.config.batch_ingestion import IngestionType, parse_batch_ingestion
from hybrid.config.bucket_json import NAME_POSTFIX, NAME_PREFIX, ROUNDING, TableRows, no_effect, parse_buckets, rolls_up
from hybrid.config.cron import Cron
from hybrid.config.rollup_json import AGGREGATION_SUFFIX, parse_aggregations
from hybrid.config.table_config import Aggregation, MergeLevel, MergeType, MoveConfig
from hybrid.config.upsert_json import parse_schedule, tasks_of
from hybrid.schema.document import Section, shown

MERGE_TASK = "MergeRollupTask"
_REQUIRED = ("bucketTimePeriod", "bufferTimePeriod")
_LEVEL_KEYS = {
    *_REQUIRED, "mergeType", ROUNDING, "maxNumRecordsPerSegment", "maxNumRecordsPerTask", NAME_PREFIX, NAME_POSTFIX,
    # How Pinot divides the work among minions.
    "maxNumParallelBuckets",
}  # fmt: skip
_TASK_KEYS = {
    "schedule",
    # How Pinot's minions divide the work, and push segments.
    "mode", "tableMaxNumTasks", "taskConcurrencyPerInstance", "minionInstanceTag", "pushMode",
    "allowDownloadFromServer", "enableReplaceSegments",
}  # fmt: skip
_EXAMPLE = 'Write "1day.bucketTimePeriod": "1d", "1day.bufferTimePeriod": "1d", for example.'


def parse_merges(offline: Section | None, rows: TableRows, move: MoveConfig | None) -> tuple[MergeLevel, ...]:
    """The levels of the OFFLINE config's MergeRollupTask, shortest buckets first; none without the task.

    The aggregations of `move` are used here, too.
    """
    task = _task(offline)
    if offline is None or task is None:
        return ()
    if rows.time_column is None:
        task.fail("timeColumnName", "is missing in segmentsConfig: segments are merged by buckets of time.")
    if parse_batch_ingestion(offline).type is IngestionType.REFRESH:
        tasks_of(offline).fail(MERGE_TASK, "cannot run on a REFRESH table: each push replaces segments by their names.")
    aggregations = _aggregations(task, rows, move)
    levels = [_level(name, section, rows, aggregations) for name, section in _levels(task).items()]
    if not levels:
        tasks_of(offline).fail(MERGE_TASK, f"names no level. {_EXAMPLE}")
    sorted_levels = sorted(levels, key=lambda level: (level.bucket_ms, level.name))
    _check_roundings(task, sorted_levels, move)
    return tuple(sorted_levels)


def parse_merge_schedule(offline: Section | None) -> Cron | None:
    """When a server merges segments; None: on request only."""
    task = _task(offline)
    return None if task is None else parse_schedule(task)


def merge_warnings(task: Section) -> Iterator[str]:
    """One warning for each key that has no effect."""
    for key in task.doc:
        if "." not in key:
            yield from Section({key: task.doc[key]}, task.source, task.path).unknown(_TASK_KEYS)
    levels = _levels(task).values()
    for section in levels:
        yield from section.unknown(_LEVEL_KEYS)
    if not any(map(rolls_up, levels)):
        aggregations = (key for key in task.doc if key.endswith(AGGREGATION_SUFFIX))
        yield from (no_effect(task, key, "a level with mergeType 'rollup'") for key in aggregations)


def _task(offline: Section | None) -> Section | None:
    place = tasks_of(offline) if offline is not None else None
    return place.section(MERGE_TASK) if place is not None and MERGE_TASK in place.doc else None


def _levels(task: Section) -> dict[str, Section]:
    docs: defaultdict[str, dict[str, object]] = defaultdict(dict)
    for key, value in task.doc.items():
        name, dot, rest = key.partition(".")
        if dot and not key.endswith(AGGREGATION_SUFFIX):
            docs[name][rest] = value
    return {name: Section(doc, task.source, task.at(name)) for name, doc in docs.items()}


def _check_roundings(task: Section, levels: Sequence[MergeLevel], move: MoveConfig | None) -> None:
    """SpecError unless each rounding is a multiple of the previous one, or times would be rounded to wrong values."""
    before_ms = move.step_ms if move is not None else 1
    for level in levels:
        if level.round_ms is None:
            continue
        if level.round_ms % before_ms:
            key = f"{level.name}.{ROUNDING}"
            task.fail(key, f"{shown(task.doc[key])} is no multiple of what has rounded the times before.")
        before_ms = level.round_ms


def _aggregations(task: Section, rows: TableRows, move: MoveConfig | None) -> Mapping[str, Aggregation]:
    """How merges combine metrics. The counts of moves are added up."""
    for key in task.doc:
        level, _, rest = key.partition(".")
        if rest.count(".") and rest.endswith(AGGREGATION_SUFFIX) and f"{level}.bucketTimePeriod" in task.doc:
            task.fail(key, f"an aggregation is of all levels. Write '{rest}'.")
    named = parse_aggregations(task, rows.schema)
    moved = dict(move.aggregations) if move is not None and move.merge_type is MergeType.ROLLUP else {}
    for name, aggregation in named.items():
        key, before = f"{name}{AGGREGATION_SUFFIX}", moved.get(name)
        if aggregation is Aggregation.COUNT and before is not Aggregation.COUNT:
            message = "'count' is for rows that a move has counted, or merged rows would be counted as one each."
            task.fail(key, f"{message} Write sum, or 'count' in the task that moves, too.")
        if before is not None and aggregation is not before:
            task.fail(key, f"'{aggregation}' is not '{before}', which moves make of it.")
    both = {**moved, **named}
    return {
        name: Aggregation.SUM if aggregation is Aggregation.COUNT else aggregation for name, aggregation in both.items()
    }


def _level(name: str, section: Section, rows: TableRows, given: Mapping[str, Aggregation]) -> MergeLevel:
    for key in _REQUIRED:
        if not section.has(key):
            section.fail(key, f"is missing. {_EXAMPLE}")
    return MergeLevel(**vars(parse_buckets(section, rows, given)), name=name)
