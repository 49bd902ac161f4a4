"""The form of a table's documents, which the pages of new and of existing tables share."""

from __future__ import annotations

from hybrid.operations.tables.pasted import PastedTable, PastedTexts, read_pasted
from hybrid.serve.console.page import PageRequest

FIELDS = ("whole", "schema", "realtime", "offline", "kafka")


def pasted_table(ask: PageRequest) -> PastedTable:
    """The checked documents in a form. Errors are those of all documents, each with its line."""
    texts = {name: ask.pasted(name) for name in FIELDS if name != "kafka"}
    found = read_pasted(ask.context.home.context, PastedTexts(**texts, kafka=ask.text("kafka")))
    ask.warn(found.warnings)
    return found
