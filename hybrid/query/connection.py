"""A DuckDB connection that can read the files of the given folders and reach nothing else.

Settings are locked, extensions are neither installed nor loaded, Python's variables are not tables, and only files
below `folders` can be read. This holds for any SQL that passes the earlier checks.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.lake.parquet_paths import literal_path
from hybrid.runtime.disk import free_bytes, reserve_bytes

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
    """A new in-memory database that takes at most `bytes_max` (None: four fifths of the machine's memory).

    Data beyond that is spilled to the folder `spill` (None: statements that need more fail). Several databases may
    share a folder: DuckDB tells its files apart, and removes the files of killed processes. See `spill_bytes`.
    `before_lock` are our own statements that must run before the settings are locked.
    """
    import duckdb

    connection = duckdb.connect(":memory:", config=dict(_CONFIG))
    # DuckDB checks the path as a statement writes it, and then that of each file found.
    names = [name for folder in map(str, folders) for name in dict.fromkeys((folder, literal_path(folder)))]
    allowed = ", ".join(quoted(f"{name}/") for name in names)
    for setting in (
        *before_lock,
        *([] if bytes_max is None else [f"SET memory_limit = '{bytes_max} B'"]),
        "SET GLOBAL TimeZone = 'UTC'",  # of the database's other connections, too
        f"SET temp_directory = {quoted(str(spill) if spill else '')}",
        *([] if spill is None else [f"SET max_temp_directory_size = '{spill_bytes(spill)} B'"]),
        f"SET allowed_directories = [{allowed}]",
        "SET enable_external_access = false",
        "SET lock_configuration = true",
    ):
        connection.execute(setting)
    return connection


def spill_bytes(folder: Path) -> int:
    """How many bytes may be spilled to a folder: half of the disk's free space at this time.

    The rest is for commits, catalog and logs, which must not fail because of a statement.
    """
    return max(0, free_bytes(folder) - reserve_bytes(folder)) // 2


def load_duckdb() -> None:
    """Imports DuckDB, which takes about 0.1 s. Call it while waiting for something else."""
    import duckdb  # noqa: F401


def quoted(text: str) -> str:
    """A SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """A quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'
