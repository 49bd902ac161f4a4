"""Errors of the machine: a full disk, a folder that cannot be written. They name the disk, the space and the remedy."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.errors import MachineError
from hybrid.runtime.folder_setting import FolderSetting

if TYPE_CHECKING:
    import sqlite3

FREE_MIN = 1024**3  # free space for operations and their staged rows, which no statement may use; see `reserve_bytes`
_MIB = 1024**2
_BLOCK_BYTES = 512  # of `st_blocks`, whatever the file system's own blocks are
_FULL = (errno.ENOSPC, errno.EDQUOT)
# Of the system, of SQLite, and of DuckDB for the space that its settings leave it.
_SAID = ("No space left on device", "Disk quota exceeded", "database or disk is full", "max_temp_directory_size")
_RESERVED = FolderSetting(FREE_MIN)


def keep_free(home: Path, count: int) -> None:
    """Set how many bytes of the disk a home's work leaves free: its setting `disk_reserve_bytes`."""
    _RESERVED.set(home, count)


def reserve_bytes(path: Path) -> int:
    """The bytes that statements, uploads and jobs leave free of the disk they write to."""
    return _RESERVED.at(path)


def existing(path: Path) -> Path:
    """The path, or the nearest existing folder above it."""
    return next(folder for folder in (path, *path.parents) if folder.exists())


def free_bytes(path: Path) -> int:
    """Free bytes of the disk of `path`, which need not exist."""
    return shutil.disk_usage(existing(path.absolute())).free


def folder_bytes(folder: Path) -> int:
    """The bytes that the files of a folder take on disk; 0 for a missing one. Files may go while they are counted."""
    return sum(_bytes_below(str(folder)))


def _bytes_below(folder: str) -> Iterator[int]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from _bytes_below(entry.path)
                else:
                    yield entry.stat(follow_symlinks=False).st_blocks * _BLOCK_BYTES
    except (FileNotFoundError, NotADirectoryError):
        return


def full_disk(path: Path) -> MachineError:
    """The error for a disk that has no room for what is written below `path`."""
    folder, reserve_mib = existing(path.absolute()), reserve_bytes(path) // _MIB
    return MachineError(
        f"The disk of {folder} is full: {free_bytes(folder) // _MIB} MiB are left. What was committed before stays.",
        hint=f"Make room (at least {reserve_mib} MiB), or move the home to another disk; then run again.",
    )


def machine_error(error: BaseException, home: Path) -> MachineError | None:
    """The machine error behind an exception, including Spark's and SQLite's wordings; None for any other exception."""
    import sqlite3

    if isinstance(error, sqlite3.Error):
        return sqlite_error(error, home / "catalog.db")
    if isinstance(error, OSError) and error.errno in _FULL:
        named = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else home
        return full_disk(named)
    return full_disk(home) if any(phrase in str(error) for phrase in _SAID) else None


def sqlite_error(error: sqlite3.Error, path: Path) -> MachineError | None:
    """The machine error behind an SQLite error of the file `path`; None for an error of the statement."""
    import sqlite3

    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return full_disk(path)
    if code == sqlite3.SQLITE_IOERR:
        if free_bytes(path) < _MIB:
            return full_disk(path)
        return MachineError(f"The disk of {path} does not read or write it: {error}.", hint="hybrid doctor")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return MachineError(f"The catalog {path} is damaged: {error}.", hint="hybrid doctor --repair")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_AUTH):
        return MachineError(f"The catalog {path} cannot be opened or written: {error}.", hint=f"ls -l {path.parent}")
    return None
