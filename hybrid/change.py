"""Changes a table that exists: adds a half, or takes over other settings. Part of the API's layer.

What rows already stand on cannot be changed here: columns, primary key, time column, topic, upsert; and the boundary's
mode is fixed from the moment that the table has both halves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hybrid.catalog.definitions import Definition
from hybrid.creation import lay_halves, settle_boundary_mode
from hybrid.errors import SpecError
from hybrid.lake.log import open_half
from hybrid.spec.kafka_security import is_secret, without_secrets
from hybrid.spec.table_config import Half, TableSpec

if TYPE_CHECKING:
    from hybrid.api import Creation, Hybrid

_DOCUMENTS = {"schema": "schema_doc", "REALTIME": "realtime_doc", "OFFLINE": "offline_doc"}


def apply_change(home: Hybrid, known: Definition, wanted: TableSpec) -> Creation:
    """Brings the table `known` to what `wanted` says. A document that `wanted` does not give stays as it is."""
    from hybrid.api import Creation

    before, definition = home.spec(known.name), _changed(known, wanted)
    changes = [
        change
        for noun, name in _DOCUMENTS.items()
        for change in _difference(noun, getattr(known, name), getattr(definition, name))
    ]
    if definition.brokers != known.brokers:
        changes.append(f"broker address: {known.brokers} -> {definition.brokers}")
    if not changes:
        return Creation(known.name, (), {}, wanted.warnings, f"Nothing to change: table '{known.name}' is as given.")
    after = home.spec_of(definition)
    _check_kept(before, after)
    _check_boundary_mode(home, before, after)
    added = after.halves - before.halves
    if added == {Half.REALTIME}:
        settle_boundary_mode(home.layout(known.name), after, home.now_ms())
    # The definition comes last: a half that it names is there.
    starts = lay_halves(home.layout(known.name), after, home.now_ms(), added) if added else {}
    home.definitions.replace(definition)
    count = "1 change" if len(changes) == 1 else f"{len(changes)} changes"
    return Creation(known.name, changes, starts, wanted.warnings, f"Changed table '{known.name}': {count}.")


def check_change(home: Hybrid, known: Definition, wanted: TableSpec) -> None:
    """SpecError when `wanted` would change what the table's rows stand on."""
    _check_kept(home.spec(known.name), home.spec_of(_changed(known, wanted)))


def _changed(known: Definition, wanted: TableSpec) -> Definition:
    documents = {name: getattr(wanted, name) or getattr(known, name) for name in _DOCUMENTS.values()}
    return replace(known, **documents, brokers=wanted.stream.brokers if wanted.stream else known.brokers)


def _check_kept(before: TableSpec, after: TableSpec) -> None:
    topic = before.stream.topic if before.stream else None
    kept = {
        "its columns": before.schema.fields == after.schema.fields,
        "its primary key": before.schema.primary_key == after.schema.primary_key,
        "its time column": before.time_column == after.time_column,
        "its upsert settings": before.upsert == after.upsert,
        "its topic": topic is None or (after.stream is not None and after.stream.topic == topic),
        "its connectors": _keeps_connectors(before, after),
        "its halves": before.halves <= after.halves,
        "its revert window": before.revert_window_ms == after.revert_window_ms or Half.OFFLINE not in before.halves,
    }
    for what, is_kept in kept.items():
        if not is_kept:
            raise SpecError(
                f"Table '{before.name}' holds rows under {what}, which cannot be changed. Nothing was changed.",
                hint="Create a table of another name.",
            )


def _keeps_connectors(before: TableSpec, after: TableSpec) -> bool:
    """What a connector has brought is known by its name, and its messages by their form. New ones may come."""
    names = {one.name: type(one.transport) for one in after.connectors}
    kept = all(names.get(one.name) is type(one.transport) for one in before.connectors)
    old, new = before.stream, after.stream
    same = old is None or new is None or (old.connector, old.message) == (new.connector, new.message)
    return kept and same


def _check_boundary_mode(home: Hybrid, before: TableSpec, after: TableSpec) -> None:
    """SpecError when a config asks for another mode than the table was created with; a task may come and go."""
    if len(before.halves) < len(Half) or after.boundary_mode is None:
        return
    mode = open_half(home.layout(before.name).half(Half.OFFLINE)).offline.boundary.mode
    if after.boundary_mode is not mode:
        raise SpecError(
            f"Table '{before.name}' was created with boundary mode '{mode}', and the mode is fixed: it cannot become "
            f"'{after.boundary_mode}'. Nothing was changed.",
            hint=f'Leave "hybrid.boundary" out, or write "{mode}".',
        )


def _difference(path: str, before: Any, after: Any) -> Iterator[str]:
    """`path: before -> after` for every leaf that differs."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            if is_secret(key) and before.get(key) != after.get(key):
                yield f"{path}/{key}: changed"
            else:
                yield from _difference(f"{path}/{key}", before.get(key), after.get(key))
    elif before != after:
        yield f"{path}: {_short(before)} -> {_short(after)}"


def _short(value: Any) -> str:
    text = "(none)" if value is None else str(without_secrets(value))
    return text if len(text) <= 60 else text[:57] + "..."
