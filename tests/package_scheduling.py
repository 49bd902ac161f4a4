"""How pytest-xdist deals out tests: by file, and the files of a package, a folder with `__init__.py`, together.

They share what lives as long as the package, such as the server of tests/live.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling


class PackageScheduling(LoadFileScheduling):
    """Deals out files, and whole packages. `packages` are folders as test ids begin."""

    def __init__(self, config: pytest.Config, log: Any, packages: Collection[str]) -> None:
        super().__init__(config, log)
        self._packages = packages

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        folder = file.rpartition("/")[0]
        return folder if folder in self._packages else file


def packages(folder: Path, root: Path) -> frozenset[str]:
    """The folders below `folder` that are packages, relative to `root`."""
    return frozenset(path.parent.relative_to(root).as_posix() for path in folder.rglob("__init__.py"))
