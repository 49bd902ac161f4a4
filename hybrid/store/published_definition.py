"""A table's definition on the store of its warehouse: the table exists there once it has one.

The home that writes the warehouse writes its own file first. Its next commit to the table publishes the file if it was
killed in between, so no commit is acknowledged for a table that the store does not list. A dropped table leaves a
tombstone: the object is only ever replaced, on the condition that nobody else has replaced it.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybrid.errors import ConflictError, DataError, StoreError
from hybrid.store.conditional_put import ObjectContent, PutOutcome
from hybrid.store.mirror import DEFINITION_FILE, Mirror, half_keys

_HALVES, _PUT, _DROPPED = "halves", "put", "dropped"

# What file of each table's definition this process knows to be on the store.
_PUBLISHED: dict[tuple[str, Path], tuple[int, int]] = {}


@dataclass(frozen=True)
class PublishedTable:
    """A table as the store lists it: its definition, and the names of its halves' folders by half."""

    name: str
    document: Mapping[str, Any]
    halves: Mapping[str, str]
    damage: str = ""  # why it cannot be read; it has no document and no halves then


def definition_key(table: str) -> str:
    """The key of a table's definition."""
    return f"{table}/{DEFINITION_FILE}"


def publish_definition(mirror: Mirror, table: Path) -> None:
    """Put a table's definition on the store, unless it is there as it is here. Nothing for a table without one.

    ConflictError when another home writes the warehouse.
    """
    path = table / DEFINITION_FILE
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return
    stamp = status.st_ino, status.st_mtime_ns
    if _PUBLISHED.get((mirror.url, table)) == stamp:
        return
    mirror.require_writable(is_recent_enough=False)
    try:
        document = {**json.loads(path.read_text(encoding="utf-8")), _HALVES: half_keys(table)}
    except FileNotFoundError:  # dropped just now
        return
    except (ValueError, TypeError) as error:
        raise DataError(f"{path} is damaged: {error}", hint="hybrid doctor") from error
    content = mirror.client.get(definition_key(table.name))
    if content is None or _without_put(_parsed(mirror, table.name, content)) != document:
        _replace(mirror, table.name, document, content)
    _PUBLISHED[mirror.url, table] = stamp


def withdraw_definition(mirror: Mirror, table: str, halves: Mapping[str, str]) -> bool:
    """Replace a table's definition by a tombstone: the table is dropped on the store. Its halves stay.

    False when the store does not list a table of this name with these folders of halves.
    """
    mirror.require_writable(is_recent_enough=False)
    _PUBLISHED.pop((mirror.url, mirror.folder / table), None)
    content = mirror.client.get(definition_key(table))
    document = {} if content is None else _parsed(mirror, table, content)
    if content is None or document.get(_DROPPED) or document.get(_HALVES) != dict(halves):
        return False
    _replace(mirror, table, {_DROPPED: True, _HALVES: dict(halves)}, content)
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
    halves = document.pop(_HALVES, {})
    return PublishedTable(name, document, halves)


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
    data = json.dumps({**document, _PUT: uuid.uuid4().hex}, indent=1).encode()
    key = definition_key(table)
    result = mirror.client.create(key, data) if content is None else mirror.client.replace(key, data, content.etag)
    if result.outcome is PutOutcome.UNKNOWN:
        raise StoreError(f"{mirror.url}: the store did not say whether it wrote {key}: {result.cause}.")
    if result.outcome is not PutOutcome.MADE:
        raise ConflictError(f"{mirror.url}: somebody else writes {key} just now.", hint="Run it again.")


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
