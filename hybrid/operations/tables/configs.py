"""Table configs one at a time, as Pinot's clients send them: each half on its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hybrid.config.table_config import Half
from hybrid.config.table_documents import TableDocuments
from hybrid.config.table_halves import raw_table_name
from hybrid.errors import ConflictError, NotFoundError, SpecError
from hybrid.operations.tables.apply import apply_table
from hybrid.operations.tables.schemas import find_schema
from hybrid.schema.document import Section, configs_in

if TYPE_CHECKING:
    from hybrid.home.home import Home
    from hybrid.operations.tables.creation import Creation

Json = dict[str, object]


def add_config(home: Home, document: Json, source: str, kafka: str | None = None) -> Creation:
    """Creates a table with this half, or with both, or adds the half to an existing table.

    The schema is the table's, or the stored schema that the config names (default: the table's name). NotFoundError
    when there is none, ConflictError when the table already has this half.
    """
    name, halves = halves_of(document, source)
    for half in halves:
        if name in home.definitions.names() and half in home.spec(name).halves:
            raise ConflictError(
                f"Table '{name}_{half}' exists already. Nothing was changed.", hint=f"PUT /tables/{name}"
            )
    return apply_table(home, documents_of(home, document, source, kafka))


def update_config(home: Home, table: str, document: Json, source: str, half_only: Half | None = None) -> Creation:
    """Replaces the config of a half, or of both. NotFoundError when the table has no such half.

    SpecError for another half than `half_only` (None: both may change).
    """
    name, halves = halves_of(document, source)
    if name != table:
        raise SpecError.at(source, "tableName", f"'{name}' is not the table of the path, '{table}'.")
    for half in halves:
        if half_only not in (None, half):
            raise SpecError.at(source, "tableType", f"the path names the {half_only} half, and this is {half}.")
        if half not in home.spec(table).halves:
            raise NotFoundError(f"Table '{table}' has no {half} half.", hint="POST /tables adds one.")
    return apply_table(home, documents_of(home, document, source, None))


def halves_of(document: Json, source: str) -> tuple[str, dict[Half, Json]]:
    """The table's name without suffix, and its configs by half: one, or both as `GET /tables/{table}` returns them."""
    halves: dict[Half, Json] = {}
    names: dict[str, None] = {}
    for config in configs_in(document):
        top = Section(config, source)
        half = Half(top.choice("tableType", tuple(Half)))
        names[raw_table_name(top.text("tableName"))] = None
        if half in halves:
            top.fail("tableType", f"{half} is given twice. Give each half once.")
        halves[half] = config
    first, *others = names
    if others:
        raise SpecError.at(source, "tableName", f"'{others[0]}' is not '{first}': both halves are of one table.")
    return first, halves


def documents_of(home: Home, document: Json, source: str, kafka: str | None) -> TableDocuments:
    """The configs with the schema that they use: the table's, else the stored one that they name."""
    name, halves = halves_of(document, source)
    configs = [(dict(config), source) for config in halves.values()]
    definition = home.definitions.find(name)
    if definition is not None:
        return TableDocuments((dict(definition.schema_doc), name), configs, kafka)
    schema_name = Section(configs[0][0], source).section("segmentsConfig").text("schemaName", name)
    try:
        schema = find_schema(home, schema_name)
    except NotFoundError as error:
        raise NotFoundError(f"{error} A table needs its schema first.", hint="POST /schemas") from error
    return TableDocuments((schema, f"schema {schema_name}"), configs, kafka)
