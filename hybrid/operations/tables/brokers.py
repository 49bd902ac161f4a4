"""Chooses the Kafka brokers of a table when its documents or the command line do not name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hybrid.config.table_halves import raw_table_name
from hybrid.config.table_json import parse_table
from hybrid.errors import SpecError

if TYPE_CHECKING:
    from hybrid.catalog.definitions import Definition
    from hybrid.config.overrides import Document
    from hybrid.config.table_documents import TableDocuments
    from hybrid.home.home import Home


def brokers_for(home: Home, given: TableDocuments, configs: list[Document]) -> str | None:
    """The brokers that override those of `configs`, or None where the configs decide.

    Explicit brokers (`--kafka`) win. An existing table keeps its own, unless its config names other brokers than
    before. The setting `kafka` is for new tables only.
    """
    if given.kafka is not None:
        return given.kafka
    names = (doc.get("tableName") for doc, _ in configs)
    name = next((name for name in names if isinstance(name, str)), None)
    definition = home.definitions.find(raw_table_name(name)) if name is not None else None
    if definition is None or definition.brokers is None:
        return given.default_kafka or home.settings.kafka
    written = _written_brokers(given.schema, configs)
    return written if written not in (None, _written_before(definition)) else definition.brokers


def _written_before(known: Definition) -> str | None:
    """The brokers that a table's stored config itself names, without overrides."""
    if known.realtime_doc is None:
        return None
    return _written_brokers((dict(known.schema_doc), known.name), [(dict(known.realtime_doc), known.name)])


def _written_brokers(schema: Document, configs: list[Document]) -> str | None:
    try:
        stream = parse_table(schema[0], schema[1], configs).stream
    except SpecError:  # without brokers; any other error is reported when the documents are parsed
        return None
    return stream.brokers if stream is not None else None
