"""Staging folders: each belongs to one operation, and is removed with it.

A folder's owner holds a file lock beside it for as long as it lives. So the next operation that stages can distinguish
folders of running operations from leftovers of killed ones, and sweeps the leftovers.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

from hybrid.runtime.file_lock import file_lock, is_locked

_OWNED = ".owned"


@contextmanager
def staging_folder(path: Path) -> Iterator[Path]:
    """Yield a path for staged rows that does not exist yet; its content is removed at the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    owned = path.with_name(path.name + _OWNED)
    with ExitStack() as owner:
        with _gate(path.parent):  # no sweep may run between creating and locking our file
            _sweep(path.parent)
            owner.enter_context(file_lock(owned))
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)
            owned.unlink(missing_ok=True)


def abandoned(folder: Path) -> list[Path]:
    """The folders in `folder` whose operations were killed, which the next operation sweeps."""
    if not folder.is_dir():
        return []
    with _gate(folder):
        return _abandoned(folder)


def sweep(folder: Path) -> list[Path]:
    """Remove leftovers of killed operations from `folder`. Returns what was removed."""
    if not folder.is_dir():
        return []
    with _gate(folder):
        return _sweep(folder)


def owned_names(folder: Path) -> list[str]:
    """The names of the folders in `folder` whose operations are running."""
    return [path.name.removesuffix(_OWNED) for path in folder.glob(f"*{_OWNED}") if is_locked(path)]


def bytes_in(folder: Path) -> int:
    """The total length of the files below a folder; 0 without any. Files may disappear meanwhile."""
    size = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            size += path.stat().st_size if path.is_file() else 0
    return size


def _gate(folder: Path) -> AbstractContextManager[None]:
    return file_lock(folder / ".lock")


def _sweep(folder: Path) -> list[Path]:
    folders = _abandoned(folder)
    for path in folders:
        shutil.rmtree(path, ignore_errors=True)
    for owned in folder.glob(f"*{_OWNED}"):
        if not is_locked(owned):
            owned.unlink(missing_ok=True)
    return folders


def _abandoned(folder: Path) -> list[Path]:
    owners = ((path, path.with_name(path.name + _OWNED)) for path in sorted(folder.iterdir()) if path.is_dir())
    return [path for path, owned in owners if not is_locked(owned)]
