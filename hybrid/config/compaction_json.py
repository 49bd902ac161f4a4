"""Reads Pinot's UpsertCompactionTask, which drops superseded rows from the segments of an upsert table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hybrid.config.table_config import CompactionConfig, Half
from hybrid.config.upsert_json import parse_schedule
from hybrid.schema.document import Section
from hybrid.schema.period import parse_period

COMPACTION_TASK = "UpsertCompactionTask"
_PERCENT, _COUNT, _BUFFER = "invalidRecordsThresholdPercent", "invalidRecordsThresholdCount", "bufferTimePeriod"
_KEYS = {
    _PERCENT, _COUNT, _BUFFER, "schedule",
    # How Pinot's minions divide the work, and which snapshot of valid documents they use.
    "validDocIdsType", "tableMaxNumTasks", "taskConcurrencyPerInstance", "minionInstanceTag",
}  # fmt: skip
_WEEK = "7d"


def parse_compaction(tasks: Mapping[Half, Section], upsert: bool) -> CompactionConfig | None:
    """The settings of the task in either half's taskTypeConfigsMap; None without the task."""
    task_sections = [section for section in tasks.values() if COMPACTION_TASK in section.doc]
    if not task_sections:
        return None
    if len(task_sections) > 1:
        task_sections[1].fail(COMPACTION_TASK, f"stands in {task_sections[0].source} already. Write it once.")
    if not upsert:
        task_sections[0].fail(COMPACTION_TASK, "needs upsert: without a primary key no row supersedes another.")
    if Half.OFFLINE not in tasks:
        task_sections[0].fail(COMPACTION_TASK, "needs an OFFLINE half: only its segments are rewritten yet.")
    section = task_sections[0].section(COMPACTION_TASK)
    if not (section.has(_PERCENT) or section.has(_COUNT)):
        section.fail(_PERCENT, f'is missing, and {_COUNT} too. Write "{_PERCENT}": "30", for example.')
    percent = section.whole(_PERCENT, 0)
    if percent > 100:
        section.fail(_PERCENT, f"{percent} is more than 100.")
    return CompactionConfig(
        buffer_ms=parse_period(section.doc.get(_BUFFER) or _WEEK, section.source, section.at(_BUFFER)),
        percent_min=percent,
        rows_min=max(1, section.whole(_COUNT, 1)),
        schedule=parse_schedule(section),
    )


def compaction_warnings(task: Section) -> Iterator[str]:
    """One warning for each key that has no effect."""
    yield from task.unknown(_KEYS)
