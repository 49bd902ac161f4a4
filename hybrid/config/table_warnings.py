"""Warnings for keys of a table's configs that have no effect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hybrid.config.bucket_json import move_warnings
from hybrid.config.compaction_json import COMPACTION_TASK, compaction_warnings
from hybrid.config.dedup_json import DEDUP, dedup_warnings
from hybrid.config.ingestion_json import ingestion_warnings
from hybrid.config.merge_json import MERGE_TASK, merge_warnings
from hybrid.config.retention_json import RETENTION_SCHEDULE, retention_warnings
from hybrid.config.stream_json import find_streams, stream_warnings
from hybrid.config.table_config import Half
from hybrid.config.table_keys import BOUNDARY, COLUMNS, DDL, EXPECTATIONS, FLOWS, KEYS, REVERT_WINDOW, TASKS
from hybrid.config.task_schedules import OPTIMIZE_SCHEDULE, VACUUM_SCHEDULE
from hybrid.config.upsert_json import MOVE_TASK, tasks_of, upsert_warnings
from hybrid.schema.document import Section

_SCHEDULES = (RETENTION_SCHEDULE, VACUUM_SCHEDULE, OPTIMIZE_SCHEDULE)


def table_warnings(halves: Mapping[Half, Section], time_column: str | None, *, has_stream: bool) -> Iterator[str]:
    """A warning for each key that has no effect, half by half. `time_column` None: the table has no time.

    With `has_stream` the REALTIME config describes a stream.
    """
    for half, top in halves.items():
        for path, quiet_keys in KEYS.items():
            section = top
            for part in filter(None, path.split(".")):
                section = section.section(part)
            yield from section.unknown(quiet_keys)
        yield from ingestion_warnings(top.section("ingestionConfig"))
        yield from retention_warnings(halves, half, time_column)
        yield from _custom_warnings(top.section("metadata").section("customConfigs"))
        yield from upsert_warnings(top.section("upsertConfig"))
        yield from dedup_warnings(top.section(DEDUP))
        yield from _task_warnings(tasks_of(top), half)
        if top.doc.get("connectors") is not None:
            from hybrid.config.connectors_json import connector_warnings

            yield from connector_warnings(top)
        if half is Half.REALTIME and has_stream:
            for section in find_streams(top):
                yield from stream_warnings(section)


def _custom_warnings(section: Section) -> Iterator[str]:
    own = {key: value for key, value in section.doc.items() if key.startswith("hybrid.")}
    yield from Section(own, section.source, section.path).unknown(
        {BOUNDARY, FLOWS, DDL, COLUMNS, REVERT_WINDOW, EXPECTATIONS, *_SCHEDULES}
    )


def _task_warnings(section: Section, half: Half) -> Iterator[str]:
    yield from section.unknown({MOVE_TASK, MERGE_TASK, COMPACTION_TASK, *TASKS})
    for name, other in ((MOVE_TASK, Half.OFFLINE), (MERGE_TASK, Half.REALTIME)):
        if half is other and name in section.doc:
            where = next(right_half for right_half in Half if right_half is not other)
            yield f"{section.source}: {section.at(name)}: it has no effect here; write it in the {where} config."
    for name in TASKS:
        if name in section.doc:
            yield f"{section.source}: {section.at(name)}: this task is not built yet and does not run."
    yield from move_warnings(section.section(MOVE_TASK))
    yield from merge_warnings(section.section(MERGE_TASK))
    yield from compaction_warnings(section.section(COMPACTION_TASK))
