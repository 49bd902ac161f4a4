"""A setting per folder: one process may open several homes, each with its own settings."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")


class FolderSetting(Generic[T]):
    """A value for each of several folders. For a path the nearest folder above it decides, else the default."""

    def __init__(self, default: T) -> None:
        self._default = default
        self._values: dict[str, T] = {}

    def set(self, folder: Path, value: T) -> None:
        """Set the value for the folder and everything below it, for its given name and its resolved path."""
        self._values = {**self._values, os.path.abspath(folder): value, os.path.realpath(folder): value}

    def at(self, path: Path) -> T:
        """The value for a path."""
        values, folder, above = self._values, os.path.abspath(path), ""
        while folder != above:
            if folder in values:
                return values[folder]
            folder, above = os.path.dirname(folder), folder
        return self._default
