"""Reads the schedules of vacuum and optimize: keys of `metadata.customConfigs`, in either half's config."""

from __future__ import annotations

from collections.abc import Mapping

from hybrid.config.cron import Cron
from hybrid.config.table_config import Half
from hybrid.schema.document import Section

VACUUM_TASK, VACUUM_SCHEDULE = "VacuumTask", "hybrid.vacuumSchedule"
OPTIMIZE_TASK, OPTIMIZE_SCHEDULE = "OptimizeTask", "hybrid.optimizeSchedule"
# At odd minutes, because people schedule their own tasks at full hours.
VACUUM_DEFAULT, OPTIMIZE_DEFAULT = "0 17 0/6 * * ?", "0 41 * * * ?"
# For the configs that the product writes. A server moves closed buckets by a schedule: without one it would move none.
MOVE_HOURLY = "0 10 * * * ?"
NEVER = "never"


def parse_upkeep_schedule(halves: Mapping[Half, Section], key: str, default: str) -> Cron | None:
    """When a server runs a task: as a half's config says, else `default`; None where it says `never`."""
    schedules: dict[str, tuple[Section, Cron | None]] = {}
    for top in halves.values():
        custom = top.section("metadata").section("customConfigs")
        if custom.has(key):
            cron = None if _is_never(custom.doc[key]) else Cron.parse(custom.doc[key], custom.source, custom.at(key))
            schedules[cron.text if cron is not None else NEVER] = (custom, cron)
    if len(schedules) > 1:
        (first, _), (other, _) = schedules.values()
        message = f"'{list(schedules)[1]}' is another one than in {first.source}: both halves are looked at together."
        other.fail(key, message)
    for _, cron in schedules.values():
        return cron
    return Cron.parse(default, "", key)


def _is_never(text: object) -> bool:
    return isinstance(text, str) and text.strip().lower() == NEVER
