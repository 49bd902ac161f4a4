"""Translates Feldera's CREATE TABLE to the documents that Pinot's users write.

A table by DDL has a schema JSON and two table configs like any other table. Where Pinot allows free keys they have
keys of their own: `hybrid.sqlType`, `hybrid.default`, `connectors`. After docs.feldera.com/sql/grammar.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from hybrid.config.connector_datagen import datagen_fields
from hybrid.config.connectors import Connector, Datagen, DeltaInput
from hybrid.config.connectors_json import parse_connectors
from hybrid.config.ddl_columns import Elements, read_elements
from hybrid.config.ddl_documents import DdlParts, table_documents
from hybrid.config.ddl_options import APPEND_ONLY, CONNECTORS, Options, option_warnings, read_options
from hybrid.config.ddl_time import time_column
from hybrid.errors import Gathered, SpecError
from hybrid.schema.document import Section
from hybrid.schema.sqltext import Cursor, Kind, SqlText, Token

_TABLE_NAME = re.compile(r"[A-Za-z0-9_]{1,100}")
_HALF_SUFFIX = re.compile(r"_(?:realtime|offline)\Z", re.IGNORECASE)
_VIEW_WORDS = ("LOCAL", "MATERIALIZED", "RECURSIVE", "OR", "LINEAR")


@dataclass(frozen=True)
class DdlTable:
    """A table: its schema JSON and its REALTIME and OFFLINE configs, as `parse_table` reads them.

    `warnings` are those of the DDL only; `parse_table` adds those of the documents.
    """

    name: str
    schema_doc: dict[str, object]
    configs: list[dict[str, object]]
    warnings: tuple[str, ...] = ()


def parse_ddl(text: str, source: str, brokers: str | None = None) -> list[DdlTable]:
    """The tables of a file of CREATE TABLE statements, in its order. SpecError says `line 12, column 5` of each error.

    `brokers` replaces the brokers of every Kafka connector, which may then name none.
    """
    cursor = Cursor(SqlText(text, source))
    tables: list[DdlTable] = []
    errors, names = Gathered(), set[str]()
    while not cursor.is_done():
        if cursor.skip(";"):
            continue
        place = cursor.place
        with errors:
            name = _read_head(cursor)
            if name.text.lower() in names:
                cursor.sql.fail(name.start, f"the table '{name.text}' is given twice in the file.")
            names.add(name.text.lower())
            tables.append(_table(cursor, name, brokers))
            if not cursor.is_done() and not cursor.skip(";"):
                cursor.fail(f"{cursor.token.shown} is not understood here: ';' ends a table.")
            continue
        cursor.leave(place, ";")
    errors.raise_all()
    if not tables:
        raise SpecError(f"{source}: holds no CREATE TABLE.")
    return tables


def _read_head(cursor: Cursor) -> Token:
    """Parse CREATE TABLE and the name."""
    if not cursor.at("CREATE", "TABLE"):
        _fail_statement(cursor)
    cursor.skip("CREATE", "TABLE")
    if cursor.at("IF", "NOT", "EXISTS"):
        cursor.fail("IF NOT EXISTS is not read. Remove it: `hybrid table apply` makes or changes a table.")
    name = cursor.name("a table")
    if cursor.at("."):
        cursor.fail(f"'{name.text}.' is not read: names of tables have one part.")
    if not _TABLE_NAME.fullmatch(name.text) or _HALF_SUFFIX.search(name.text):
        rule = "letters, digits and _, at most 100, not ending with _REALTIME or _OFFLINE"
        cursor.sql.fail(name.start, f"{name.shown} is no name of a table: {rule}.")
    return name


def _fail_statement(cursor: Cursor) -> NoReturn:
    words = [cursor.ahead(count).raw.upper() for count in range(4)]
    if words[0] == "CREATE" and words[1] == "OR":
        cursor.fail("CREATE OR REPLACE is not read. Write CREATE TABLE; `hybrid table apply` changes a table.")
    if words[0] == "CREATE":
        kind = next((word for word in words[1:] if word not in _VIEW_WORDS), "")
        statement = f"CREATE {kind}"
    else:
        statement = words[0] if cursor.token.kind is Kind.WORD else cursor.token.shown
    cursor.fail(f"{statement} is not read here: a file holds CREATE TABLE statements only.")


def _table(cursor: Cursor, name: Token, brokers: str | None) -> DdlTable:
    elements = read_elements(cursor, name.text)
    options = read_options(cursor)
    section = options.connectors()
    connectors = parse_connectors(section, CONNECTORS, brokers)
    _check_columns(section, connectors, elements)
    _check_append_only(options, connectors, elements)
    time = time_column(elements, options)
    schema_doc, configs = table_documents(DdlParts(name.text, elements, options, section.doc.get(CONNECTORS, []), time))
    return DdlTable(name.text, schema_doc, configs, (*elements.warnings, *option_warnings(options)))


def _check_append_only(options: Options, connectors: tuple[Connector, ...], elements: Elements) -> None:
    if not options.boolean(APPEND_ONLY):
        return
    if elements.key:
        key = ", ".join(elements.key)
        options.fail(APPEND_ONLY, f"'true' does not fit the PRIMARY KEY ({key}): a row replaces the one before it.")
    for connector in connectors:
        if connector.can_delete:
            hint = 'Give its format "update_format": "raw", or leave append_only out.'
            options.fail(APPEND_ONLY, f"'true' does not fit the connector '{connector.name}', which can delete. {hint}")


def _check_columns(section: Section, connectors: tuple[Connector, ...], elements: Elements) -> None:
    """SpecError where a connector names a column that the table does not have."""
    for connector_section, connector in zip(section.sections(CONNECTORS), connectors, strict=True):
        config = connector_section.section("transport").section("config")
        if isinstance(connector.transport, DeltaInput) and connector.transport.timestamp_column:
            _check_column(config, "timestamp_column", connector.transport.timestamp_column, elements)
        if isinstance(connector.transport, Datagen):
            for fields, name in datagen_fields(config):
                _check_column(fields, name, name, elements)


def _check_column(section: Section, key: str, name: str, elements: Elements) -> None:
    if elements.find(name) is None:
        section.fail(key, f"'{name}' is not a column of the table. Columns are: {elements.names}.")
