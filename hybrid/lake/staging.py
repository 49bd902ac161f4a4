"""Folders for staged rows: each belongs to one act, and goes with it.

A folder's owner holds a file lock beside it for as long as it lives, so whoever stages next can tell the folders of
acts that go on from what killed ones left behind, and sweeps the latter.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_OWNED = ".owned"


@contextmanager
def staging_folder(path: Path) -> Iterator[Path]:
    """A path to stage rows at, not yet there; what lies there is removed at the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    owned = path.with_name(path.name + _OWNED)
    with _gate(path.parent):  # nobody sweeps between the making and the locking of our file
        _sweep(path.parent)
        owner = owned.open("w")
        fcntl.flock(owner, fcntl.LOCK_EX)
    with owner:
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)
            owned.unlink(missing_ok=True)


def abandoned(folder: Path) -> list[Path]:
    """The folders in `folder` whose acts were killed: what the next act sweeps."""
    if not folder.is_dir():
        return []
    with _gate(folder):
        return _abandoned(folder)


def sweep(folder: Path) -> list[Path]:
    """Removes what killed acts left in `folder`; what was removed."""
    if not folder.is_dir():
        return []
    with _gate(folder):
        return _sweep(folder)


def bytes_in(folder: Path) -> int:
    """What the files in a folder and below take, by their lengths; 0 when there is none. Files may go meanwhile."""
    found = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            found += path.stat().st_size if path.is_file() else 0
    return found


@contextmanager
def _gate(folder: Path) -> Iterator[None]:
    with (folder / ".lock").open("w") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        yield


def _sweep(folder: Path) -> list[Path]:
    found = _abandoned(folder)
    for path in found:
        shutil.rmtree(path, ignore_errors=True)
    for owned in folder.glob(f"*{_OWNED}"):
        if _is_abandoned(owned):
            owned.unlink(missing_ok=True)
    return found


def _abandoned(folder: Path) -> list[Path]:
    owners = ((path, path.with_name(path.name + _OWNED)) for path in sorted(folder.iterdir()) if path.is_dir())
    return [path for path, owned in owners if not owned.exists() or _is_abandoned(owned)]


def _is_abandoned(owned: Path) -> bool:
    try:
        with owned.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, FileNotFoundError):
        return False
    return True
