"""The verbs of connectors and of resets of a table's stream; `hybrid.rpc.verbs` names them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hybrid.rpc import json_views as views
from hybrid.runtime.json_values import json_document

if TYPE_CHECKING:
    from hybrid.api.hybrid import Hybrid

Json = Any


def connectors(home: Hybrid, *, table: str) -> Json:
    """The status of a table's connectors."""
    return views.connector_views(home.table(table).connectors.statuses())


def connector_start(home: Hybrid, *, table: str, name: str | None = None) -> Json:
    """Starts a connector, or all connectors of a table."""
    return views.connector_views(home.table(table).connectors.start(name))


def connector_pause(home: Hybrid, *, table: str, name: str | None = None) -> Json:
    """Pauses a connector, or all connectors of a table."""
    return views.connector_views(home.table(table).connectors.pause(name))


def connector_reset_plan(home: Hybrid, *, table: str, to: str, name: str | None = None) -> Json:
    """What a reset of a table's stream would lose, skip and read again."""
    return json_document(home.table(table).connectors.reset(to, name, dry_run=True).to_json())


def connector_reset(
    home: Hybrid, *, table: str, to: str, name: str | None = None, accepted: Mapping[str, Json] | None = None
) -> Json:
    """Sets the offsets to read a table's stream from; `accepted` is the result of `connector_reset_plan`."""
    from hybrid.ingest.reset import ResetReport

    accept = ResetReport.from_json(accepted) if accepted is not None else False
    return json_document(home.table(table).connectors.reset(to, name, accept=accept).to_json())
