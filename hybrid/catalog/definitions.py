"""Table definitions as their users gave them: `<warehouse>/<table>/definition.json`, beside the table's data.

A table exists if its definition does. Each one is a small file, written atomically: readers see all of it or none.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hybrid.errors import ConflictError, DataError
from hybrid.runtime import durable
from hybrid.store.mirror import DEFINITION_FILE, mirror_at

# What may become a path: a single plain folder below the warehouse.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")


def is_table_name(name: str) -> bool:
    """Whether a table may have this name, which must be a single plain folder below the warehouse."""
    return _NAME.fullmatch(name) is not None


@dataclass(frozen=True)
class Definition:
    """A table's documents as given, after `--set`; `brokers` overrides the address in the config."""

    name: str
    schema_doc: Mapping[str, Any]
    realtime_doc: Mapping[str, Any] | None = field(repr=False)
    offline_doc: Mapping[str, Any] | None = field(repr=False)
    brokers: str | None
    created_at: str


def parse_definition(data: bytes, path: Path) -> Definition:
    """The definition in the bytes of a file. DataError, which names its path, when they are damaged."""
    try:
        return Definition(**json.loads(data.decode("utf-8")))
    except (ValueError, TypeError) as error:
        raise DataError(f"{path} is damaged: {error}", hint="hybrid doctor") from error


class Definitions:
    """The definitions in a warehouse folder."""

    def __init__(self, warehouse: Path) -> None:
        self._warehouse = warehouse

    def names(self) -> list[str]:
        """The names of all tables, sorted."""
        try:
            # A pipeline asks for them twice a second, and a Path of each folder takes longer.
            found = [entry.name for entry in os.scandir(self._warehouse) if not entry.name.startswith(".")]
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(name for name in found if self._has_file(name))

    def _has_file(self, name: str) -> bool:
        """Whether a table's file is there. One that cannot be looked at now is: whoever reads it says why."""
        try:
            return self.stamp(name) is not None
        except OSError:
            return True

    def find(self, name: str) -> Definition | None:
        """The table of that name; None without one, or for an invalid name. DataError when it is damaged."""
        if not is_table_name(name):
            return None
        try:
            return parse_definition(self._path(name).read_bytes(), self._path(name))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def stamp(self, name: str) -> tuple[int, int] | None:
        """A value that differs whenever the definition's file differs; None when there is no such table."""
        try:
            # Each statement calls this, and a Path takes longer.
            status = os.stat(f"{self._warehouse}/{name}/{DEFINITION_FILE}")
        except (FileNotFoundError, NotADirectoryError):
            return None
        return status.st_ino, status.st_mtime_ns

    def add(self, definition: Definition) -> None:
        """Add a table. ConflictError when one of that name exists, even if another process added it just now."""
        if not durable.create_text(self._writable(definition.name), _document(definition)):
            raise ConflictError(f"Table '{definition.name}' exists already.", hint="hybrid table list")
        self.publish(definition.name)

    def replace(self, definition: Definition) -> None:
        """Replace a table's definition."""
        durable.write_text(self._writable(definition.name), _document(definition))
        self.publish(definition.name)

    def require_writable(self) -> None:
        """ConflictError when another home writes the warehouse on a store."""
        mirror = mirror_at(self._warehouse)
        if mirror is not None:
            mirror.require_writable(is_recent_enough=False)

    def publish(self, name: str, *, with_plans: bool = False) -> None:
        """Put a table's definition on the warehouse's store, where it has one; `with_plans`: its plans, too."""
        mirror = mirror_at(self._warehouse)
        if mirror is not None:
            from hybrid.store.published_definition import publish_definition

            publish_definition(mirror, self._warehouse / name, with_plans=with_plans)

    def published(self, name: str) -> Definition | None:
        """A table's definition on the warehouse's store; None without a store, or without one there."""
        mirror = mirror_at(self._warehouse)
        if mirror is None:
            return None
        from hybrid.store.published_definition import published_table

        table = published_table(mirror, name)
        return None if table is None else Definition(**table.document)

    def publish_again(self, name: str) -> None:
        """Publish the definition of a table that was dropped and is back; every process will look at it again."""
        mirror = mirror_at(self._warehouse)
        if mirror is not None:
            from hybrid.store.published_definition import rewrite_definition

            durable.write_text(self._path(name), self._path(name).read_text(encoding="utf-8"))
            self.publish(name, with_plans=True)
            rewrite_definition(mirror, name)  # a drop that is being published elsewhere finds another object

    def withdraw(self, name: str, halves: Mapping[str, str]) -> bool:
        """Let the warehouse's store no longer list a dropped table with these folders of halves; whether it did."""
        mirror = mirror_at(self._warehouse)
        if mirror is None:
            return False
        from hybrid.store.published_definition import withdraw_definition

        return withdraw_definition(mirror, name, halves)

    def set_aside(self, name: str, ending: str) -> Path | None:
        """Rename a damaged definition, with the suffix `ending`. Returns the new path; None when there is none."""
        aside = self._path(name).with_name(f"{DEFINITION_FILE}.damaged-{ending}")
        try:
            durable.rename(self._path(name), aside)
        except FileNotFoundError:
            return None
        return aside

    def _path(self, name: str) -> Path:
        return self._warehouse / name / DEFINITION_FILE

    def _writable(self, name: str) -> Path:
        """The path of a table's definition, whose folder is made."""
        path = self._path(name)
        durable.make_private(self._warehouse.parent)
        durable.make_folder(path.parent)
        return path


def _document(definition: Definition) -> str:
    return json.dumps(asdict(definition), indent=1)
