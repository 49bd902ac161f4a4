"""Table configs one at a time, as Pinot's clients give them: each half on its own. Part of the API's layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hybrid.errors import ConflictError, NotFoundError, SpecError
from hybrid.schemas import find_schema
from hybrid.spec.document import Section, configs_in
from hybrid.spec.table_config import Half
from hybrid.spec.table_json import raw_table_name

if TYPE_CHECKING:
    from hybrid.api import Creation, Hybrid, TableDocuments

Json = dict[str, object]


def add_config(home: Hybrid, document: Json, source: str, kafka: str | None = None) -> Creation:
    """Creates a table of this one half, or adds the half to the table that is there.

    The schema is the table's, or the stored one that the config names (else of the table's name): NotFoundError when
    there is none. ConflictError when the table has this half.
    """
    document = only_config(document)
    name, half = half_of(document, source)
    if name in home.definitions.names() and half in home.spec(name).halves:
        raise ConflictError(f"Table '{name}_{half}' exists already. Nothing was changed.", hint=f"PUT /tables/{name}")
    return home.apply_table(documents_of(home, name, document, source, kafka))


def update_config(home: Hybrid, table: str, document: Json, source: str) -> Creation:
    """Puts another config in place of one half's. NotFoundError when the table has no such half."""
    document = only_config(document)
    name, half = half_of(document, source)
    if name != table:
        raise SpecError.at(source, "tableName", f"'{name}' is not the table of the path, '{table}'.")
    if half not in home.spec(table).halves:
        raise NotFoundError(f"Table '{table}' has no {half} half.", hint="POST /tables adds one.")
    return home.apply_table(documents_of(home, table, document, source, None))


def only_config(document: Json) -> Json:
    """The config in a document of one half's, as `GET /tables/{table}?type=` answers it."""
    found = configs_in(document)
    return found[0] if len(found) == 1 else document


def half_of(document: Json, source: str) -> tuple[str, Half]:
    """The table's name without suffix and the half that a config is for."""
    top = Section(only_config(document), source)
    half = Half(top.choice("tableType", tuple(Half)))
    return raw_table_name(top.text("tableName")), half


def documents_of(home: Hybrid, name: str, document: Json, source: str, kafka: str | None) -> TableDocuments:
    """One half's config with the schema that it uses: the table's, else the stored one that it names."""
    from hybrid.api import TableDocuments

    known = home.definitions.find(name)
    if known is not None:
        return TableDocuments((dict(known.schema_doc), name), [(document, source)], kafka)
    wanted = Section(document, source).section("segmentsConfig").text("schemaName", name)
    try:
        schema = find_schema(home, wanted)
    except NotFoundError as error:
        raise NotFoundError(f"{error} A table needs its schema first.", hint="POST /schemas") from error
    return TableDocuments((schema, f"schema {wanted}"), [(document, source)], kafka)
