"""Folders for staged rows: each belongs to one act, and goes with it.

A folder's owner holds a file lock beside it for as long as it lives, so whoever stages next can tell the folders of
acts that go on from what killed ones left behind, and sweeps the latter.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_OWNED = ".owned"


@contextmanager
def staging_folder(path: Path) -> Iterator[Path]:
    """A path to stage rows at, not yet there; what lies there is removed at the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    owned = path.with_name(path.name + _OWNED)
    with (path.parent / ".lock").open("w") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)  # nobody sweeps between the making and the locking of our file
        _sweep(path.parent)
        owner = owned.open("w")
        fcntl.flock(owner, fcntl.LOCK_EX)
    with owner:
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)
            owned.unlink(missing_ok=True)


def _sweep(folder: Path) -> None:
    for owned in folder.glob(f"*{_OWNED}"):
        if _is_abandoned(owned):
            owned.unlink(missing_ok=True)
    for path in folder.iterdir():
        if path.is_dir() and not path.with_name(path.name + _OWNED).exists():
            shutil.rmtree(path, ignore_errors=True)


def _is_abandoned(owned: Path) -> bool:
    try:
        with owned.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, FileNotFoundError):
        return False
    return True
