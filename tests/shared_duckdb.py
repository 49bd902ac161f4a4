"""One DuckDB for all statements over files in a process of `make unit`: starting one takes longer than most statements.

Its settings are the product's, but for the folders that may be read: all below the system's temporary folder. Temporary
tables belong to a cursor. `make test` starts one for each statement, as the product does.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.query import engine
from hybrid.query.connection import locked_connection

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TEMP = Path(tempfile.gettempdir()).resolve()


def share_duckdb() -> None:
    """Replaces what the engine opens for statements over files, in this process."""
    engine.locked_connection = _cursor


@cache
def _database() -> DuckDBPyConnection:
    return locked_connection([_TEMP], before_lock=["SET GLOBAL TimeZone = 'UTC'"])


def _cursor(folders: Iterable[Path], bytes_max: int | None = None, spill: Path | None = None) -> DuckDBPyConnection:
    paths = list(folders)
    if bytes_max is None and spill is None and all(path.is_relative_to(_TEMP) for path in paths):
        return _database().cursor()
    return locked_connection(paths, bytes_max, spill)
