"""Schemas on their own, as in Pinot: stored before the tables that use them.

A table has a copy of its schema. The tables' copies take precedence over the stored schema, and an update changes them
too. If one table cannot accept the update, it is refused and nothing is changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hybrid.catalog.definitions import Definition
from hybrid.catalog.schema_files import Schemas, is_schema_name
from hybrid.config.schema_json import parse_schema
from hybrid.config.table_documents import TableDocuments
from hybrid.errors import ConflictError, NotFoundError, SpecError
from hybrid.operations.tables.change import apply_change, check_change
from hybrid.operations.tables.create import validate_documents

if TYPE_CHECKING:
    from hybrid.home.home import Home


@dataclass(frozen=True)
class SchemaChange:
    """The result of storing a schema: the tables that were changed with it; warnings name keys without effect."""

    name: str
    tables: tuple[str, ...]
    warnings: tuple[str, ...]


def schema_names(home: Home) -> list[str]:
    """The names of all schemas, stored ones and those of tables, sorted."""
    return sorted({*_stored(home).names(), *(str(table.schema_doc["schemaName"]) for table in _definitions(home))})


def find_schema(home: Home, name: str) -> dict[str, Any]:
    """A schema as it was stored; NotFoundError, with a suggestion, for an unknown name."""
    users = users_of(home, name)
    document = dict(users[0].schema_doc) if users else _stored(home).find(name)
    if document is None:
        raise NotFoundError.named("Schema", name[:100], schema_names(home))
    return document


def put_schema(home: Home, document: dict[str, object], source: str, *, override: bool = True) -> SchemaChange:
    """Stores a schema, and changes the tables that use it.

    ConflictError when it exists and `override` is false; SpecError when it is invalid or would lose a table's values.
    Nothing is changed then.
    """
    schema = parse_schema(document, source)
    if not is_schema_name(schema.name):
        raise SpecError.at(source, "schemaName", "a name has letters, digits, '_', '-' and '.', at most 100.")
    if not override and schema.name in schema_names(home):
        raise ConflictError(f"Schema '{schema.name}' exists already. Nothing was changed.")
    users = users_of(home, schema.name)
    specs = [validate_documents(home, _documents(user, document, source)) for user in users]
    for user, spec in zip(users, specs, strict=True):
        check_change(home, user, spec)
    changed = [apply_change(home, user, spec) for user, spec in zip(users, specs, strict=True)]
    _stored(home).put(schema.name, document)
    return SchemaChange(schema.name, tuple(change.table for change in changed if change.changes), schema.warnings)


def changes_columns(home: Home, document: Mapping[str, object], source: str) -> bool:
    """Whether `put_schema` would change a table's columns, which needs Spark. SpecError as there."""
    schema = parse_schema(dict(document), source)
    users = users_of(home, schema.name)
    specs = [validate_documents(home, _documents(user, document, source)) for user in users]
    return any([check_change(home, user, spec) for user, spec in zip(users, specs, strict=True)])


def drop_schema(home: Home, name: str) -> None:
    """Removes a schema; NotFoundError when there is none, ConflictError while a table uses it."""
    find_schema(home, name)
    users = users_of(home, name)
    if users:
        tables = ", ".join(f"'{user.name}'" for user in users)
        raise ConflictError(f"Schema '{name}' is used by table {tables}. Nothing was changed.")
    _stored(home).remove(name)


def users_of(home: Home, name: str) -> list[Definition]:
    """The tables that use a schema."""
    return [table for table in _definitions(home) if table.schema_doc["schemaName"] == name]


def _definitions(home: Home) -> list[Definition]:
    here, remote = home.definitions, home.remote
    definitions = [*map(here.find, here.names()), *map(remote.find, sorted(remote.names() - {*here.names()}))]
    return [definition for definition in definitions if definition is not None]


def _documents(user: Definition, schema: Mapping[str, object], source: str) -> Any:
    configs = [(dict(doc), user.name) for doc in (user.realtime_doc, user.offline_doc) if doc is not None]
    return TableDocuments((dict(schema), source), configs, user.brokers)


def _stored(home: Home) -> Schemas:
    return Schemas(home.settings.warehouse)
