"""Paths of Parquet files in SQL, as DuckDB's `read_parquet` takes them."""

from __future__ import annotations

import re
from collections.abc import Iterable

_PATTERN = re.compile(r"[*?\[]")


def literal_path(path: str) -> str:
    """A pattern that matches this path alone: DuckDB takes `*`, `?` and `[` in paths for patterns."""
    # No pattern matches a backslash. A path that matches nothing as a pattern, DuckDB takes as it is.
    return path if "\\" in path else _PATTERN.sub(r"[\g<0>]", path)


def paths_sql(paths: Iterable[str]) -> str:
    """SQL literals of paths, separated by commas, each of which stands for one file."""
    return ", ".join("'" + literal_path(path).replace("'", "''") + "'" for path in paths)
