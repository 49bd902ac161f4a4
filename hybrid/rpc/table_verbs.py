"""The verbs that define, list, export and drop tables; `hybrid.rpc.verbs` names them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hybrid.config.table_documents import TableDocuments
from hybrid.operations.inference.infer_options import InferOptions
from hybrid.operations.tables.drop import copy_names
from hybrid.rpc import json_views as views
from hybrid.rpc.flat_arguments import flat
from hybrid.runtime.json_values import json_document

if TYPE_CHECKING:
    from hybrid.api.hybrid import Hybrid

Json = Any


def table_create(home: Hybrid, *, documents: Mapping[str, Any]) -> Json:
    """Creates a table from documents (see `hybrid.api.hybrid.TableDocuments`)."""
    return views.creation_view(home.create_table(TableDocuments.from_json(documents)))


def table_apply(home: Hybrid, *, documents: Mapping[str, Any], dry_run: bool = False) -> Json:
    """Creates a table, or changes the existing one."""
    return views.creation_view(home.apply_table(TableDocuments.from_json(documents), dry_run=dry_run))


def table_add(home: Hybrid, *, documents: Mapping[str, Any], update: bool = False) -> Json:
    """Creates a table, or adds a half to it; with `update`, changes an existing one."""
    return views.creation_view(home.add_table(TableDocuments.from_json(documents), update=update))


def schema_put(home: Hybrid, *, schema: Mapping[str, Any], source: str, override: bool = True) -> Json:
    """Stores a schema, and changes the tables that use it."""
    from hybrid.operations.tables.schemas import put_schema

    done = put_schema(home.context, dict(schema), source, override=override)
    told = f"Stored schema '{done.name}'{''.join(f'; changed table {name!r}' for name in done.tables)}."
    return {"name": done.name, "tables": list(done.tables), "warnings": list(done.warnings), "sentence": told}


def changes_table_columns(home: Hybrid, arguments: Mapping[str, Any]) -> bool:
    """Whether documents change the columns of an existing table. SpecError for a change that is refused."""
    from hybrid.operations.tables.change import check_change
    from hybrid.operations.tables.schemas import changes_columns

    if "schema" in arguments:
        return changes_columns(home.context, arguments["schema"], arguments["source"])
    spec = home.validate(TableDocuments.from_json(arguments["documents"]))
    known = home.context.definitions.find(spec.name)
    return known is not None and not arguments.get("dry_run") and check_change(home.context, known, spec)


def table_validate(home: Hybrid, *, documents: Mapping[str, Any]) -> Json:
    """Checks documents; the table they describe, and `warnings`."""
    spec = home.validate(TableDocuments.from_json(documents))
    return {"table": views.table_view(spec), "warnings": list(spec.warnings)}


def table_show(home: Hybrid, *, table: str) -> Json:
    """One table."""
    return views.table_details(home.spec(table))


def table_drop(home: Hybrid, *, table: str, purge: bool = False) -> Json:
    """Drops a table; a sentence."""
    return {"sentence": home.drop_table(table, purge=purge)}


def table_undrop(home: Hybrid, *, table: str) -> Json:
    """Brings a dropped table back; a sentence."""
    return {"sentence": home.undrop_table(table)}


def table_list(home: Hybrid, *, sizes: bool = False) -> Json:
    """All tables; with `sizes` the bytes of their data files too, None of remote tables."""
    listed = [views.table_view(spec) for spec in home.context.listed_specs()]
    if not sizes:
        return listed
    from hybrid.operations.tables.status import stored_bytes

    remote = home.context.remote.names()
    sizes_here = {name: stored_bytes(home.context, name) for name in home.table_names() if name not in remote}
    return [{**table, "bytes": sizes_here.get(table["name"])} for table in listed]


def table_dropped(home: Hybrid) -> Json:
    """All dropped tables that can be restored or purged."""
    return [json_document(vars(found)) for found in home.dropped_tables()]


def table_copies(home: Hybrid, *, table: str) -> list[str]:
    """The names of a table's dropped copies, oldest first; of TABLE@TIME the one copy."""
    return copy_names(home.context, table)


@flat(options=InferOptions)
def table_infer(home: Hybrid, *, source: str, options: InferOptions) -> Json:
    """The documents of a table that fit a topic. No file is read: a client infers from its own files itself."""
    from hybrid.operations.inference.infer import infer_topic

    return json_document(infer_topic(home.context, source, options).to_json())


def table_export(home: Hybrid, *, table: str) -> Json:
    """The documents of a table in the form that `table_apply` takes; `hidden` are the places of hidden secrets."""
    return views.export_view(home.table(table).export())
