"""Reads Pinot's upsertConfig; and what every task of a table config has."""

from __future__ import annotations

from collections.abc import Iterator

from hybrid.errors import suggestion
from hybrid.spec.cron import Cron
from hybrid.spec.document import Section, shown
from hybrid.spec.schema import FieldSpec, Schema
from hybrid.spec.table_config import ARRIVED, UpsertConfig
from hybrid.spec.ttl import METADATA_TTL, metadata_warning, read_ttl
from hybrid.spec.types import DataType

DELETED_TTL = "deletedKeysTTL"
MOVE_TASK = "RealtimeToOfflineSegmentsTask"

_UPSERT_KEYS = {
    "mode", "comparisonColumn", "comparisonColumns", "deleteRecordColumn", DELETED_TTL, METADATA_TTL,
    # How Pinot's servers keep their key maps; the answer is the same without.
    "hashFunction", "enableSnapshot", "snapshot", "enablePreload", "preload", "consistencyMode", "metadataManagerClass",
    "metadataManagerConfigs", "upsertViewRefreshIntervalMs", "newSegmentTrackingTimeMs",
    "defaultPartialUpsertStrategy", "enableDeletedKeysCompactionConsistency",
}  # fmt: skip
# In these types "higher" means the same to every engine.
_COMPARABLE = {
    DataType.INT, DataType.LONG, DataType.FLOAT, DataType.DOUBLE,
    DataType.BIG_DECIMAL, DataType.TIMESTAMP, DataType.STRING,
}  # fmt: skip

# The difference of two values of these is a span.
_MEASURABLE = _COMPARABLE - {DataType.STRING}


def parse_upsert(section: Section, schema: Schema, time_column: str | None) -> UpsertConfig | None:
    """FULL upsert, or None for an append table."""
    if not section.doc:
        return None
    mode = section.choice("mode", ("FULL", "PARTIAL", "NONE"))
    if mode == "NONE":
        return None
    if mode == "PARTIAL":
        section.fail("mode", "'PARTIAL' is not built yet. Use FULL.")
    if not schema.primary_key:
        hint = f'Add "primaryKeyColumns": [...] to the schema {schema.name}.'
        section.fail("mode", "upsert needs a primary key, and the schema has none.", hint=hint)
    comparison = _comparison_column(section, schema, time_column)
    ttl = _deleted_ttl(section, schema, comparison)
    return UpsertConfig(comparison, _delete_column(section, schema), deleted_keys_ttl=ttl)


def upsert_warnings(section: Section) -> Iterator[str]:
    """One warning for each key that has no effect. What is off says nothing."""
    yield from (warning for key in section.doc if section.has(key) for warning in _one(section, key, _UPSERT_KEYS))
    if section.has("mode") and section.doc["mode"] != "NONE" and read_ttl(section, METADATA_TTL):
        yield metadata_warning(section, "one row of a key is seen")


def column(section: Section, key: str, name: str, schema: Schema) -> FieldSpec:
    """The field of the schema that `key` names. SpecError with the columns there are."""
    field = schema.find(name)
    if field is None:
        near = suggestion(name, schema.column_names)
        columns = ", ".join(schema.column_names)
        section.fail(key, f"'{name}' is not a column of the schema '{schema.name}'.{near} Columns are: {columns}.")
    return field


def _one(section: Section, key: str, known: set[str]) -> Iterator[str]:
    return Section({key: section.doc[key]}, section.source, section.path).unknown(known)


def _comparison_column(section: Section, schema: Schema, time_column: str | None) -> str:
    key = "comparisonColumns" if section.has("comparisonColumns") else "comparisonColumn"
    names = section.texts(key) or ((time_column,) if time_column else ())
    if not names:
        section.fail(key, "is missing: without a time column, upsert needs to know which row is newer.")
    if names == (ARRIVED,):
        return ARRIVED
    if len(names) > 1:
        section.fail(key, f"{shown(list(names))}: several comparison columns are not built yet. Name one.")
    field = column(section, key, names[0], schema)
    if field.data_type not in _COMPARABLE or not field.single_value:
        section.fail(key, f"'{field.name}' is {field.data_type} and has no order. Name a number, TIMESTAMP or STRING.")
    return field.name


def _delete_column(section: Section, schema: Schema) -> str | None:
    key = "deleteRecordColumn"
    if not section.has(key):
        return None
    field = column(section, key, section.text(key), schema)
    if field.data_type is not DataType.BOOLEAN or not field.single_value:
        section.fail(key, f"'{field.name}' is {field.data_type}; a delete marker is a BOOLEAN column with one value.")
    return field.name


def _deleted_ttl(section: Section, schema: Schema, comparison: str) -> float:
    """How far behind the highest comparison value a delete marker may go; 0: never."""
    ttl = read_ttl(section, DELETED_TTL)
    field = schema.find(comparison)
    if ttl and field is not None and field.data_type not in _MEASURABLE:
        section.fail(DELETED_TTL, f"is measured by '{comparison}', which is {field.data_type}. Name a number.")
    return ttl


def tasks_of(top: Section) -> Section:
    """The tasks of a table config, by type."""
    return top.section("task").section("taskTypeConfigsMap")


def parse_schedule(section: Section) -> Cron | None:
    """When a task runs by itself."""
    key = "schedule"
    return Cron.parse(section.doc[key], section.source, section.at(key)) if section.has(key) else None
