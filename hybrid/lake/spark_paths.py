"""Paths as Spark's readers take them, which look for patterns in them."""

from __future__ import annotations

import re
from collections.abc import Iterable

_OF_PATTERNS = re.compile(r"[{}\[\]*?\\]")


def has_pattern(path: str) -> bool:
    """Whether Spark would take a path for a pattern."""
    return _OF_PATTERNS.search(path) is not None


def literal_paths(paths: Iterable[str]) -> list[str]:
    """Paths each of which Spark takes for this one file or folder, whatever characters it contains.

    Its option `__globPaths__` does not serve: with two paths or more it replaces each that looks like a pattern by all
    of them, so that rows are read several times (`DataSource.checkAndGlobPathIfNecessary` in Spark 4.2).
    """
    return [_OF_PATTERNS.sub(r"\\\g<0>", path) for path in paths]
