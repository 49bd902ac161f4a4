"""Reads how long a half keeps its rows: Pinot's retentionTimeUnit and retentionTimeValue, and when retention runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hybrid.config.batch_ingestion import IngestionType, parse_batch_ingestion
from hybrid.config.cron import Cron
from hybrid.config.table_config import Half, TableSpec
from hybrid.config.task_schedules import parse_upkeep_schedule
from hybrid.errors import SpecError
from hybrid.schema.document import Section

# Named after Pinot's RetentionManager, a task of its controller that no table config names.
RETENTION_TASK = "RetentionManager"
RETENTION_SCHEDULE = "hybrid.retentionSchedule"
RETENTION_KEYS = ("retentionTimeUnit", "retentionTimeValue")
# The interval of Pinot's controller.
EVERY_SIX_HOURS = "0 0 0/6 * * ?"
# Java's time units, in nanoseconds.
_UNITS_NS = {
    "DAYS": 86_400_000_000_000,
    "HOURS": 3_600_000_000_000,
    "MINUTES": 60_000_000_000,
    "SECONDS": 1_000_000_000,
    "MILLISECONDS": 1_000_000,
    "MICROSECONDS": 1000,
    "NANOSECONDS": 1,
}
_MS_NS = 1_000_000


def parse_retention(halves: Mapping[Half, Section], time_column: str | None) -> dict[Half, int]:
    """The retention in milliseconds by half; a half that keeps its rows for ever is left out."""
    ages_ms = {half: _retention_ms(top.section("segmentsConfig")) for half, top in halves.items()}
    return {
        half: millis
        for half, millis in ages_ms.items()
        if millis is not None and _why_not(half, halves[half], time_column) is None
    }


def parse_retention_schedule(halves: Mapping[Half, Section], retention: Mapping[Half, int]) -> Cron | None:
    """When a server runs retention; None where nothing is dropped by age."""
    cron = parse_upkeep_schedule(halves, RETENTION_SCHEDULE, EVERY_SIX_HOURS)
    return cron if retention else None


def retention_warnings(halves: Mapping[Half, Section], half: Half, time_column: str | None) -> Iterator[str]:
    """One warning where a retention has no effect."""
    section = halves[half].section("segmentsConfig")
    why = _why_not(half, halves[half], time_column) if _retention_ms(section) is not None else None
    if why is not None:
        yield f"{section.source}: {section.at(', '.join(RETENTION_KEYS))}: {why}; nothing is dropped by age."


def require_retention(spec: TableSpec) -> None:
    """SpecError, which says why, for a table that drops nothing by age."""
    if spec.retention:
        return
    if spec.time_column is None:
        raise SpecError(
            f"Table '{spec.name}' has no time column: its rows have no age, so none is dropped by it.",
            hint='Name one in "segmentsConfig": {"timeColumnName": ...} when you create a table.',
        )
    for half, doc in ((Half.OFFLINE, spec.offline_doc), (Half.REALTIME, spec.realtime_doc)):
        top = Section(dict(doc or {}), spec.name)
        why = _why_not(half, top, spec.time_column) if _retention_ms(top.section("segmentsConfig")) else None
        if why is not None:
            raise SpecError(
                f"Table '{spec.name}' drops nothing by age. The {half} config says how long rows are kept, but {why}.",
                hint=f"Take {' and '.join(RETENTION_KEYS)} out.",
            )
    raise SpecError(
        f"Table '{spec.name}' has no retention: it keeps its rows for ever.",
        hint='Add "segmentsConfig": {"retentionTimeUnit": "DAYS", "retentionTimeValue": "30"} to the config of a half.',
    )


def _retention_ms(section: Section) -> int | None:
    unit, value = RETENTION_KEYS
    keys = [key for key in RETENTION_KEYS if section.doc.get(key) not in (None, "")]
    if not keys:
        return None
    for key, other in ((unit, value), (value, unit)):
        if key not in keys:
            section.fail(key, f"is missing: {other} alone says no time. Write DAYS and 30, for example.")
    retention_ms = section.whole(value, 0, low=1) * _UNITS_NS[section.choice(unit, tuple(_UNITS_NS))] // _MS_NS
    if retention_ms < 1:
        section.fail(value, "is shorter than a millisecond, the unit of times.")
    return retention_ms


def _why_not(half: Half, top: Section, time_column: str | None) -> str | None:
    """Why the retention of a half has no effect; None when it has one."""
    if time_column is None:
        return "without a timeColumnName rows have no age"
    if half is Half.OFFLINE and parse_batch_ingestion(top).type is IngestionType.REFRESH:
        return "with REFRESH each push replaces the data, as in Pinot"
    return None
