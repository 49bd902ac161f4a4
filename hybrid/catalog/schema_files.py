"""Schemas stored on their own: `<warehouse>/.schemas/<name>.json`, before or without a table.

A table holds a copy of its schema in its definition. Each file is written atomically: readers see all of it or none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hybrid.runtime import durable
from hybrid.store.mirror import mirror_at

SCHEMAS_FOLDER = ".schemas"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


def is_schema_name(name: str) -> bool:
    """Whether a schema of that name can be stored on its own."""
    return _NAME.fullmatch(name) is not None


class Schemas:
    """The schemas that are stored on their own in a warehouse folder."""

    def __init__(self, warehouse: Path) -> None:
        self._folder = warehouse / SCHEMAS_FOLDER

    def names(self) -> list[str]:
        """The names of the schemas, sorted."""
        return sorted(path.stem for path in self._folder.glob("*.json"))

    def find(self, name: str) -> dict[str, Any] | None:
        """The schema of that name as it was given, or None."""
        if not is_schema_name(name):
            return None
        try:
            text = self._path(name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        document: dict[str, Any] = json.loads(text)
        return document

    def put(self, name: str, document: Mapping[str, Any]) -> None:
        """Store a schema, replacing one of the same name."""
        durable.make_folder(self._folder)
        mirror = mirror_at(self._folder)
        if mirror is not None:
            mirror.require_writable()
        durable.write_text(self._path(name), json.dumps(dict(document), indent=1))
        if mirror is not None:
            mirror.client.upload_file(f"{SCHEMAS_FOLDER}/{name}.json", self._path(name))

    def remove(self, name: str) -> None:
        """Remove the schema of that name, if it exists."""
        mirror = mirror_at(self._folder)
        if mirror is not None:
            mirror.require_writable()
            mirror.client.delete(f"{SCHEMAS_FOLDER}/{name}.json")
        self._path(name).unlink(missing_ok=True)
        if self._folder.is_dir():
            durable.sync(self._folder)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"
