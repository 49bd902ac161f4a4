"""Verbs that list and export tables; `hybrid.rpc.verbs` names them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hybrid.operations.inference.infer_options import InferOptions
from hybrid.operations.tables.drop import copy_names
from hybrid.rpc import json_views as views
from hybrid.rpc.flat_arguments import flat
from hybrid.runtime.json_values import json_document

if TYPE_CHECKING:
    from hybrid.api.hybrid import Hybrid

Json = Any


def table_list(home: Hybrid, *, sizes: bool = False) -> Json:
    """All tables; with `sizes` the bytes of their data files too."""
    listed = [views.table_view(home.spec(name)) for name in home.table_names()]
    if not sizes:
        return listed
    from hybrid.operations.tables.status import stored_bytes

    return [{**table, "bytes": stored_bytes(home.context, table["name"])} for table in listed]


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
