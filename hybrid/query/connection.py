"""A DuckDB connection that can read the files of the given folders and reach nothing else.

Settings are locked, extensions are neither installed nor loaded, Python's variables are not tables, and there is no
file access but below `folders`. Whatever SQL passed the other fences meets this one.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.disk import free_bytes, reserve_bytes

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_CONFIG = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "allow_community_extensions": "false",
}


def locked_connection(
    folders: Iterable[Path],
    bytes_max: int | None = None,
    spill: Path | None = None,
    before_lock: Iterable[str] = (),
) -> DuckDBPyConnection:
    """A fresh in-memory database that takes at most `bytes_max` (None: four fifths of the machine's memory).

    What it has no room for lies in the folder `spill` (None: nowhere, and statements that need more fail). Several may
    share one: DuckDB tells its files apart, and removes those that a killed process has left. See `spill_bytes`.
    `before_lock` are statements of our own that must run while settings can still be made.
    """
    import duckdb

    connection = duckdb.connect(":memory:", config=dict(_CONFIG))
    allowed = ", ".join(quoted(f"{folder}/") for folder in folders)
    for setting in (
        *before_lock,
        *([] if bytes_max is None else [f"SET memory_limit = '{bytes_max} B'"]),
        "SET TimeZone = 'UTC'",
        f"SET temp_directory = {quoted(str(spill) if spill else '')}",
        *([] if spill is None else [f"SET max_temp_directory_size = '{spill_bytes(spill)} B'"]),
        f"SET allowed_directories = [{allowed}]",
        "SET enable_external_access = false",
        "SET lock_configuration = true",
    ):
        connection.execute(setting)
    return connection


def spill_bytes(folder: Path) -> int:
    """How many bytes of what does not fit into memory may lie in a folder: half of the disk's free room then.

    The rest is for commits, catalog and logs, which must not fail for the sake of a statement.
    """
    return max(0, free_bytes(folder) - reserve_bytes(folder)) // 2


def load_duckdb() -> None:
    """Imports DuckDB, which takes about 0.1 s: good to do while something else is waited for."""
    import duckdb  # noqa: F401


def quoted(text: str) -> str:
    """A SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """A quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'
