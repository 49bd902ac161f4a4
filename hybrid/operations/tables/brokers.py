"""Which Kafka brokers a table reads from, when its documents or the command line leave them out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hybrid.config.table_json import parse_table, raw_table_name
from hybrid.errors import SpecError

if TYPE_CHECKING:
    from hybrid.catalog.definitions import Definition
    from hybrid.config.overrides import Document
    from hybrid.config.table_documents import TableDocuments
    from hybrid.home.home import Home


def brokers_for(home: Home, given: TableDocuments, configs: list[Document]) -> str | None:
    """Brokers that stand in for those of `configs`, or None where the configs decide.

    Brokers that are named (`--kafka`) win. An existing table keeps its own, unless its config names other brokers than
    before. The setting `kafka` is for new tables only.
    """
    if given.kafka is not None:
        return given.kafka
    names = (doc.get("tableName") for doc, _ in configs)
    name = next((name for name in names if isinstance(name, str)), None)
    known = home.definitions.find(raw_table_name(name)) if name is not None else None
    if known is None or known.brokers is None:
        return given.default_kafka or home.settings.kafka
    written = _written_brokers(given.schema, configs)
    return written if written not in (None, _written_before(known)) else known.brokers


def _written_before(known: Definition) -> str | None:
    """The brokers that a table's stored config names, before anything stood in for them."""
    if known.realtime_doc is None:
        return None
    return _written_brokers((dict(known.schema_doc), known.name), [(dict(known.realtime_doc), known.name)])


def _written_brokers(schema: Document, configs: list[Document]) -> str | None:
    try:
        stream = parse_table(schema[0], schema[1], configs).stream
    except SpecError:  # it names none, or something else is wrong that is reported where the documents are read
        return None
    return stream.brokers if stream is not None else None
