"""Reads Pinot's dedupConfig: of the rows of a primary key the first that arrived is seen."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from hybrid.spec.connectors import Connector
from hybrid.spec.document import Section, shown
from hybrid.spec.schema import Schema
from hybrid.spec.table_config import ARRIVED, MessageFormat, StreamConfig, UpsertConfig
from hybrid.spec.upsert_json import column

DEDUP = "dedupConfig"
_TTL, _TIME = "metadataTTL", "dedupTimeColumn"
_KEYS = {
    "dedupEnabled", _TTL, _TIME,
    # How Pinot's servers keep their key maps; the answer is the same without.
    "hashFunction", "metadataManagerClass", "metadataManagerConfigs", "enablePreload", "preload",
    "allowDedupConsumptionDuringCommit", "ignoreNonDefaultTiers",
}  # fmt: skip


def parse_dedup(section: Section, schema: Schema) -> UpsertConfig | None:
    """The order in which the first row wins, or None for a table without dedup."""
    if not section.doc or not section.boolean("dedupEnabled", default=True):
        return None
    if not schema.primary_key:
        hint = f'Add "primaryKeyColumns": [...] to the schema {schema.name}.'
        section.fail("dedupEnabled", "dedup needs a primary key, and the schema has none.", hint=hint)
    read_ttl(section, _TTL)
    if section.has(_TIME):
        column(section, _TIME, section.text(_TIME), schema)
    return UpsertConfig(ARRIVED, first_wins=True)


def refuse_deletes(section: Section, stream: StreamConfig | None, connectors: tuple[Connector, ...]) -> None:
    """SpecError for a table whose messages delete: the first row of a key stays."""
    is_change = stream is not None and stream.message is not MessageFormat.RECORD
    if is_change or any(one.can_delete for one in connectors):
        section.fail(
            "dedupEnabled",
            "the table's messages delete and update rows, and on a dedup table the first row of a key stays.",
            hint='Use upsertConfig {"mode": "FULL"}, or messages that are records.',
        )


def read_ttl(section: Section, key: str) -> float:
    """A span in the unit of the column that it is measured by, as Pinot writes it; 0 where there is none."""
    value = section.doc.get(key)
    if value is None:
        return 0
    try:
        number = float(str(value)) if not isinstance(value, bool) else float("nan")
    except ValueError:
        number = float("nan")
    if not isfinite(number) or number < 0:
        section.fail(key, f"{shown(value)} is not a number from 0 on.")
    return number


def dedup_warnings(section: Section) -> Iterator[str]:
    """One warning for each key that has no effect. What is off says nothing."""
    if not section.doc or not section.boolean("dedupEnabled", default=True):
        return
    yield from section.unknown(_KEYS)
    if read_ttl(section, _TTL):
        yield (
            f"{section.source}: {section.at(_TTL)}: it has no effect: keys take no memory here, so that none is "
            "forgotten, and a second row of a key is never seen, however late it comes."
        )
