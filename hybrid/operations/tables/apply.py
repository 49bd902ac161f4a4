"""Applies a table's documents: creates the table, changes it, or adds a half."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hybrid.errors import ConflictError
from hybrid.operations.tables.change import apply_change
from hybrid.operations.tables.create import create_table, validate_documents
from hybrid.operations.tables.creation import Creation

if TYPE_CHECKING:
    from hybrid.config.table_documents import TableDocuments
    from hybrid.home.home import Home


def apply_table(home: Home, given: TableDocuments, *, dry_run: bool = False) -> Creation:
    """Create a table, or change the existing one to match the documents; the result lists the differences."""
    spec = validate_documents(home, given)
    definition = home.definitions.find(spec.name)
    if definition is not None:
        return apply_change(home, definition, spec, dry_run=dry_run, kafka=given.kafka)
    if dry_run:
        return Creation(spec.name, (), {}, spec.warnings, f"Would create table '{spec.name}'. Nothing was changed.")
    return create_table(home, given)


def add_table(home: Home, given: TableDocuments, *, update: bool = False) -> Creation:
    """Create a table or add a half, as Pinot does; ConflictError for an existing half, unless `update`."""
    spec = validate_documents(home, given)
    definition = home.definitions.find(spec.name)
    existing = home.spec_of(definition).halves & spec.halves if definition is not None else frozenset()
    if existing and not update:
        raise ConflictError(
            f"Table '{spec.name}_{min(existing).value}' exists already. Nothing was changed.",
            hint="Give -update (or PUT /tables/{name}) to change it.",
        )
    return apply_table(home, given)
