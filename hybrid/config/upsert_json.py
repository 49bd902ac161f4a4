"""Reads Pinot's upsertConfig, and the keys that all tasks of a table config share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NoReturn

from hybrid.config.cron import Cron
from hybrid.config.partial_json import (
    COMPARABLE,
    DEFAULT_STRATEGY,
    STRATEGIES,
    check_several,
    parse_partial,
)
from hybrid.config.table_config import ARRIVED, UpsertConfig
from hybrid.config.ttl import METADATA_TTL, metadata_warning, read_ttl
from hybrid.schema.document import Section, shown
from hybrid.schema.named_column import column
from hybrid.schema.schema import Schema
from hybrid.schema.types import DataType

DELETED_TTL = "deletedKeysTTL"
MOVE_TASK = "RealtimeToOfflineSegmentsTask"

_UPSERT_KEYS = {
    "mode", "comparisonColumn", "comparisonColumns", "deleteRecordColumn", DELETED_TTL, METADATA_TTL,
    # How Pinot's servers keep their key maps; answers do not depend on it.
    "hashFunction", "enableSnapshot", "snapshot", "enablePreload", "preload", "consistencyMode",
    "upsertViewRefreshIntervalMs", "newSegmentTrackingTimeMs",
    "enableDeletedKeysCompactionConsistency", STRATEGIES, DEFAULT_STRATEGY,
}  # fmt: skip

# The keys on which answers depend, beside the mode.
_MEANT = (
    "comparisonColumn", "comparisonColumns", "deleteRecordColumn", DELETED_TTL, STRATEGIES, DEFAULT_STRATEGY,
)  # fmt: skip

# The types of columns by which a TTL can be measured: two values have a difference.
_MEASURABLE = COMPARABLE - {DataType.STRING}


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
    ttl = _deleted_ttl(section, schema, (first, *others))
    return UpsertConfig(first, _delete_column(section, schema), tuple(others), partial, deleted_keys_ttl=ttl)


def refuse_other_upsert(realtime: Section, offline: Section) -> NoReturn:
    """Raises SpecError, at the first key that differs, for two upsertConfigs that are not the same."""
    key = next((key for key in (*_MEANT, "mode") if realtime.doc.get(key) != offline.doc.get(key)), "mode")
    values = [shown(section.doc[key]) if key in section.doc else "missing" for section in (offline, realtime)]
    message = f"{values[0]} here, and {values[1]} in {realtime.source}: upsert holds over both halves alike."
    offline.fail(key, message)


def upsert_warnings(section: Section) -> Iterator[str]:
    """One warning for each key that has no effect, unless it is empty or off."""
    yield from (warning for key in section.doc if section.has(key) for warning in _one(section, key, _UPSERT_KEYS))
    if section.has("mode") and section.doc["mode"] != "NONE" and read_ttl(section, METADATA_TTL):
        yield metadata_warning(section, "one row of a key is seen")
    if section.doc.get("mode") == "PARTIAL" and read_ttl(section, DELETED_TTL):
        yield f"{section.source}: {section.at(DELETED_TTL)}: has no effect: with PARTIAL all rows of a key stay."


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


def _deleted_ttl(section: Section, schema: Schema, compared: Sequence[str]) -> float:
    """How far a delete marker has to be behind the highest comparison value to be dropped; 0: it is kept."""
    ttl, comparison = read_ttl(section, DELETED_TTL), compared[0]
    if ttl and len(compared) > 1:
        section.fail(DELETED_TTL, f"is measured by one comparison column, and there are {len(compared)}. Remove it.")
    field = schema.find(comparison)
    if ttl and field is not None and field.data_type not in _MEASURABLE:
        section.fail(DELETED_TTL, f"is measured by '{comparison}', which is {field.data_type}. Name a number.")
    return ttl


def tasks_of(top: Section) -> Section:
    """The tasks of a table config, by type."""
    return top.section("task").section("taskTypeConfigsMap")


def parse_schedule(section: Section) -> Cron | None:
    """The schedule of a task; None when it runs on request only."""
    key = "schedule"
    return Cron.parse(section.doc[key], section.source, section.at(key)) if section.has(key) else None
