"""Definitions of remote tables: those of a warehouse on a store that other query servers hold, and this home does not.

`<warehouse>/.remote/<table>.json`, written by the home's follower and read by its servers. Nothing else sees them: a
table of `Definitions` has its halves in this home.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from hybrid.catalog.definitions import Definition, is_table_name, parse_definition
from hybrid.runtime import durable

_FOLDER, _ENDING = ".remote", ".json"
# A folder that changed so recently may change again without another time of change: it is listed again.
_SETTLED_NS = 100_000_000


class RemoteTables:
    """The remote tables of a warehouse's folder."""

    def __init__(self, warehouse: Path) -> None:
        self._folder = warehouse / _FOLDER
        self._listed: tuple[int, frozenset[str]] = (0, frozenset())

    def names(self) -> frozenset[str]:
        """The names of all remote tables. Every request of a server with pinned tables asks for them."""
        try:
            changed_ns = os.stat(self._folder).st_mtime_ns
        except (FileNotFoundError, NotADirectoryError):
            return frozenset()
        if self._listed[0] == changed_ns:
            return self._listed[1]
        is_settled = time.time_ns() - changed_ns > _SETTLED_NS
        names = frozenset(name.removesuffix(_ENDING) for name in os.listdir(self._folder) if _is_definition(name))
        self._listed = (changed_ns if is_settled else 0), names
        return names

    def find(self, name: str) -> Definition | None:
        """The definition of a remote table; None for any other name. DataError when it is damaged."""
        if not is_table_name(name):
            return None
        try:
            return parse_definition(self._path(name).read_bytes(), self._path(name))
        except FileNotFoundError:
            return None

    def put(self, name: str, document: Mapping[str, Any]) -> None:
        """Add a remote table, or replace its definition."""
        text, path = json.dumps(document, indent=1), self._path(name)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            durable.make_folder(self._folder)
            durable.write_text(path, text)

    def remove(self, name: str) -> None:
        """Remove a table that is remote no more, if it was."""
        self._path(name).unlink(missing_ok=True)

    def keep_only(self, names: Collection[str]) -> None:
        """Remove all tables but these."""
        for name in self.names() - set(names):
            self.remove(name)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}{_ENDING}"


def _is_definition(name: str) -> bool:
    return name.endswith(_ENDING) and not name.startswith(".")
