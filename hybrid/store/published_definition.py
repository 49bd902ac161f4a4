"""A table's definition on the store of its warehouse: the table exists there once it has one.

The home that writes the warehouse writes its own file first. Its next commit to the table publishes the file if it was
killed in between, so no commit is acknowledged for a table that the store does not list. A dropped table leaves a
tombstone: the object is only ever replaced, on the condition that nobody else has replaced it. It is read before
everything that it is made of, and before the look at who writes: what was read later than that look may be newer.

It also names the list of the table's plans, see `hybrid.store.published_plans`, and the table's latest purge.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybrid.errors import DataError, StoreError
from hybrid.store.conditional_put import ObjectContent
from hybrid.store.mirror import DEFINITION_FILE, Mirror, half_keys
from hybrid.store.published_plans import HALVES, PLANS, PlanState, listed_plans, put_list, remove_list

_PUT, _DROPPED, _PURGE = "put", "dropped", "purge"
_ATTEMPTS = 20

# What file of each table's definition this process knows to be on the store.
_PUBLISHED: dict[tuple[str, Path], tuple[int, int]] = {}


@dataclass(frozen=True)
class PublishedTable:
    """A table as the store lists it: its definition, the names of its halves' folders by half, its list of plans."""

    name: str
    document: Mapping[str, Any]
    halves: Mapping[str, str]
    damage: str = ""  # why it cannot be read; it has no document and no halves then
    plans: str | None = None
    purge: str | None = None  # the id of the latest purge: who follows removes what it removed


def definition_key(table: str) -> str:
    """The key of a table's definition."""
    return f"{table}/{DEFINITION_FILE}"


def publish_definition(mirror: Mirror, table: Path, *, with_plans: bool = False, purge: str | None = None) -> None:
    """Put a table's definition on the store, unless it is there as it is here. Nothing for a table without one.

    `with_plans`: its plans, too. `purge`: with the id of a purge that has removed rows.

    ConflictError when another home writes the warehouse.
    """
    path, refused = table / DEFINITION_FILE, dict[str, Any]()
    for _ in range(_ATTEMPTS):
        try:
            status = os.stat(path)
        except FileNotFoundError:
            return
        stamp = status.st_ino, status.st_mtime_ns
        if not with_plans and purge is None and _PUBLISHED.get((mirror.url, table)) == stamp:
            return
        content = mirror.client.get(definition_key(table.name))
        there = {} if content is None else _without_put(_parsed(mirror, table.name, content))
        mirror.require_writable(is_recent_enough=False)
        _remove_list(mirror, table.name, refused, there)  # its condition can no longer hold
        document = _document(mirror, table, there, with_plans=with_plans, purge=purge)
        if document is None:
            return
        if document == there or _try_replace(mirror, table.name, document, content):
            _PUBLISHED[mirror.url, table] = stamp
            _remove_list(mirror, table.name, there, document)
            return
        refused = document
    raise mirror.contended(definition_key(table.name))


def _remove_list(mirror: Mirror, table: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Remove the list of plans that a definition named, unless the one that is on the store now does."""
    if before.get(PLANS) not in (None, now.get(PLANS)):
        with suppress(StoreError):  # `hybrid warehouse sync` removes it
            remove_list(mirror, table, before)


def _document(
    mirror: Mirror, table: Path, there: Mapping[str, Any], *, with_plans: bool, purge: str | None
) -> dict[str, Any] | None:
    """What a table's definition on the store has to be; `there` is what it is. None for a table dropped just now."""
    path, halves = table / DEFINITION_FILE, half_keys(table)
    try:
        document = {**json.loads(path.read_text(encoding="utf-8")), HALVES: halves}
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise DataError(f"{path} is damaged: {error}", hint="hybrid doctor") from error
    kept = there if there.get(HALVES) == halves else {}
    more = {
        PLANS: put_list(mirror, table, there) if with_plans else kept.get(PLANS),
        _PURGE: purge or kept.get(_PURGE),
    }
    return {**document, **{name: value for name, value in more.items() if value is not None}}


def withdraw_definition(mirror: Mirror, table: str, halves: Mapping[str, str]) -> bool:
    """Replace a table's definition by a tombstone: the table is dropped on the store. Its halves stay.

    False when the store does not list a table of this name with these folders of halves.
    """
    _PUBLISHED.pop((mirror.url, mirror.folder / table), None)
    content = mirror.client.get(definition_key(table))
    mirror.require_writable(is_recent_enough=False)
    document = {} if content is None else _parsed(mirror, table, content)
    if content is None or document.get(_DROPPED) or document.get(HALVES) != dict(halves):
        return False
    _replace(mirror, table, {_DROPPED: True, HALVES: dict(halves)}, content)
    return True


def rewrite_definition(mirror: Mirror, table: str) -> None:
    """Write a definition again as it is, so that whoever has looked at it before can no longer replace it."""
    content = mirror.client.get(definition_key(table))
    if content is not None:
        _replace(mirror, table, _without_put(_parsed(mirror, table, content)), content)


def published_table(mirror: Mirror, name: str) -> PublishedTable | None:
    """A table that the store lists; None for none, or for one that was dropped."""
    content = mirror.client.get(definition_key(name))
    if content is None:
        return None
    document = _without_put(_parsed(mirror, name, content))
    if document.get(_DROPPED):
        return None
    halves, plans, purge = document.pop(HALVES, {}), document.pop(PLANS, None), document.pop(_PURGE, None)
    return PublishedTable(name, document, halves, plans=plans, purge=purge)


def published_plans(mirror: Mirror, table: PublishedTable) -> Mapping[str, PlanState]:
    """The plans of a table that the store lists, by id. DataError when their list is missing or damaged."""
    for _ in range(_ATTEMPTS):
        plans = listed_plans(mirror, table.name, {HALVES: table.halves, PLANS: table.plans})
        if plans is not None:
            return plans
        newer = published_table(mirror, table.name)
        if newer is None or newer.plans == table.plans:
            break
        table = newer  # another list took its place just now
    raise DataError(
        f"{mirror.url}: the list of the plans of '{table.name}' is missing.",
        hint="hybrid warehouse sync, at the home that writes",
    )


def published_tables(mirror: Mirror) -> list[PublishedTable]:
    """The tables that the store lists, by name; those with a damaged definition, too."""
    folders = sorted(folder for folder in mirror.client.list_folder().folders if not folder.startswith("."))
    tables = list[PublishedTable]()
    for folder in folders:
        try:
            table = published_table(mirror, folder)
        except DataError as error:
            table = PublishedTable(folder, {}, {}, str(error))
        if table is not None:
            tables.append(table)
    return tables


def _replace(mirror: Mirror, table: str, document: Mapping[str, Any], content: ObjectContent | None) -> None:
    """Write a definition in the place of `content`. ConflictError when somebody else has written it since."""
    if not _try_replace(mirror, table, document, content):
        raise mirror.contended(definition_key(table))


def _try_replace(mirror: Mirror, table: str, document: Mapping[str, Any], content: ObjectContent | None) -> bool:
    """As `_replace`; False when somebody else has written it since."""
    data = json.dumps({**document, _PUT: uuid.uuid4().hex}, indent=1).encode()
    return mirror.try_put(definition_key(table), data, content)


def _parsed(mirror: Mirror, table: str, content: ObjectContent) -> dict[str, Any]:
    try:
        document = json.loads(content.data)
        if isinstance(document, dict):
            return document
    except ValueError:
        pass
    raise DataError(
        f"{mirror.url}/{definition_key(table)} is damaged.",
        hint="Delete that object; the home that writes the warehouse puts it again: hybrid warehouse sync",
    )


def _without_put(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != _PUT}
