"""Reads a table's documents from pasted texts. All errors come together, each with the line of its place."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from hybrid.config.overrides import Document, parse_document
from hybrid.config.table_documents import TableDocuments
from hybrid.errors import DataError, Gathered, HybridError, SpecError, UsageError
from hybrid.operations.tables.create import validate_documents
from hybrid.schema.jsonplaces import lines_of, nearest_line

if TYPE_CHECKING:
    from hybrid.home.home import Home

SCHEMA, REALTIME, OFFLINE, WHOLE = "Schema", "REALTIME config", "OFFLINE config", "Document"
_HALVES = ("realtime", "offline", "REALTIME", "OFFLINE")
_PATH = re.compile(r"(?P<path>[\w.\[\]-]{1,300}): ")
_TEXT_MAX = 1_000_000  # characters of one text


@dataclass(frozen=True)
class PastedTexts:
    """The texts of a schema and its configs, or `whole`: one exported document or a CREATE TABLE statement."""

    schema: str = ""
    realtime: str = ""
    offline: str = ""
    whole: str = ""
    kafka: str | None = None


@dataclass(frozen=True)
class PastedTable:
    """The valid documents of a table. `warnings` are those of its DDL, which the documents do not repeat."""

    name: str
    documents: TableDocuments
    warnings: Sequence[str] = ()


@dataclass(frozen=True)
class _Place:
    """The text that a document is part of, and the path of the document in it."""

    text: str
    path: str = ""

    @cached_property
    def _lines(self) -> dict[str, int]:
        return lines_of(self.text)

    def line(self, path: str) -> int | None:
        """The line of a path of the document."""
        return nearest_line(self._lines, f"{self.path}.{path}" if self.path else path)


@dataclass
class _Read:
    """The documents read so far, with the place of each by the source that its errors name."""

    schema: Document | None = None
    configs: list[Document] = field(default_factory=list)
    places: dict[str, _Place] = field(default_factory=dict)


def read_pasted(home: Home, given: PastedTexts) -> PastedTable:
    """Read and check pasted texts. SpecError carries all errors; UsageError for missing or too many texts."""
    parts = {SCHEMA: given.schema, REALTIME: given.realtime, OFFLINE: given.offline}
    filled = {source: text for source, text in parts.items() if text.strip()}
    if any(len(text) > _TEXT_MAX for text in (*filled.values(), given.whole)):
        raise UsageError(f"A text is longer than {_TEXT_MAX:,} characters.")
    if given.whole.strip():
        if filled:
            raise UsageError(f"One document stands for the others: leave {' and '.join(filled)} empty, or {WHOLE}.")
        is_json = given.whole.lstrip().startswith("{")
        return _from_export(home, given) if is_json else _from_statement(home, given)
    if SCHEMA not in filled or len(filled) == 1:
        raise UsageError("A table needs a schema and a REALTIME or OFFLINE config, or one document that has both.")
    return _checked(home, _from_parts(filled), given.kafka)


def _from_parts(filled: Mapping[str, str]) -> _Read:
    read, errors = _Read(), Gathered()
    for source, text in filled.items():
        with errors:
            document = parse_document(text, source)
            read.places[source] = _Place(text)
            if source == SCHEMA:
                read.schema = document, source
            else:
                read.configs.append((document, source))
    errors.raise_all()
    return read


def _from_export(home: Home, given: PastedTexts) -> PastedTable:
    export = parse_document(given.whole, WHOLE)
    schema = export.get("schema")
    if not isinstance(schema, dict):
        expected = "One document has the keys schema, realtime and offline; a schema alone has a field of its own"
        raise SpecError.at(WHOLE, "schema", f"is missing. {expected}.")
    read = _Read((schema, f"{WHOLE}, schema"), places={f"{WHOLE}, schema": _Place(given.whole, "schema")})
    for key in _HALVES:
        config = export.get(key)
        if config is None:
            continue
        source = f"{WHOLE}, {key}"
        if not isinstance(config, dict):
            raise SpecError.at(WHOLE, key, "is not an object: write {...}.")
        read.configs.append((config, source))
        read.places[source] = _Place(given.whole, key)
    if not read.configs:
        raise SpecError(f"{WHOLE}: holds no table config. Its key is realtime or offline.")
    return _checked(home, read, given.kafka)


def _from_statement(home: Home, given: PastedTexts) -> PastedTable:
    found = TableDocuments.from_statements(given.whole, WHOLE, given.kafka, default_kafka=home.settings.kafka)
    if len(found) > 1:
        raise UsageError(f"The statements declare {len(found)} tables. Give one CREATE TABLE at a time.")
    (table,) = found
    return PastedTable(validate_documents(home, table.documents).name, table.documents, table.warnings)


def _checked(home: Home, read: _Read, kafka: str | None) -> PastedTable:
    assert read.schema is not None
    documents = TableDocuments(read.schema, read.configs, kafka)
    try:
        return PastedTable(validate_documents(home, documents).name, documents)
    except (SpecError, DataError) as error:
        first, *others = [_with_line(found, read.places) for found in error.all()]
        raise first.carry(others) from error


def _with_line(error: HybridError, places: Mapping[str, _Place]) -> HybridError:
    """The error with the line of the place that it names; itself where it names none."""
    message = str(error)
    for source, place in places.items():
        match = _PATH.match(message.removeprefix(f"{source}: ")) if message.startswith(f"{source}: ") else None
        if match is None:
            continue
        line = place.line(match["path"])
        return error if line is None else type(error)(f"{message} (line {line})", hint=error.hint)
    return error
