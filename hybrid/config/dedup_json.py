"""Reads Pinot's dedupConfig: of the rows of a primary key queries show the first that arrived."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hybrid.config.table_config import ARRIVED, MessageFormat, StreamConfig, UpsertConfig
from hybrid.config.ttl import METADATA_TTL, metadata_warning, read_ttl
from hybrid.schema.document import Section
from hybrid.schema.named_column import column
from hybrid.schema.schema import Schema

if TYPE_CHECKING:
    from hybrid.config.connectors import Connector

DEDUP = "dedupConfig"
_TIME = "dedupTimeColumn"
_KEYS = {
    "dedupEnabled", METADATA_TTL, _TIME,
    # How Pinot's servers keep their key maps; answers do not depend on it.
    "hashFunction", "enablePreload", "preload",
    "allowDedupConsumptionDuringCommit", "ignoreNonDefaultTiers",
}  # fmt: skip


def parse_dedup(section: Section, schema: Schema) -> UpsertConfig | None:
    """The upsert config in which the first row wins, or None for a table without dedup."""
    if not _is_on(section):
        return None
    if not schema.primary_key:
        hint = f'Add "primaryKeyColumns": [...] to the schema {schema.name}.'
        section.fail("dedupEnabled", "dedup needs a primary key, and the schema has none.", hint=hint)
    read_ttl(section, METADATA_TTL)
    if section.has(_TIME):
        column(section, _TIME, section.text(_TIME), schema)
    return UpsertConfig(ARRIVED, first_wins=True)


def refuse_not_first(
    section: Section, stream: StreamConfig | None, connectors: tuple[Connector, ...], *, by_flows: bool
) -> None:
    """SpecError for dedup on a table whose messages update or delete rows, or whose rows flows load."""
    is_change = stream is not None and stream.message is not MessageFormat.RECORD
    if is_change or any(connector.can_delete for connector in connectors):
        section.fail(
            "dedupEnabled",
            "the table's messages delete and update rows, and on a dedup table the first row of a key stays.",
            hint='Use upsertConfig {"mode": "FULL"}, or messages that are records.',
        )
    if by_flows:
        section.fail("dedupEnabled", "flows bring the table's rows, and a refresh loads all of them again.")


def dedup_warnings(section: Section) -> Iterator[str]:
    """One warning for each key that has no effect, unless dedup is off."""
    if not _is_on(section):
        return
    yield from section.unknown(_KEYS)
    if read_ttl(section, METADATA_TTL):
        yield metadata_warning(section, "a second row of a key is never seen")


def _is_on(section: Section) -> bool:
    return bool(section.doc) and section.boolean("dedupEnabled", default=True)
