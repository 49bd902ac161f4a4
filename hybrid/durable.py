"""Files that outlast a power failure: write, sync, rename, sync the folder. See docs/adr/0024-durability.md.

A file's bytes and its name are stored apart. `fsync` on the file stores the bytes; `fsync` on its folder stores the
name. Without either, a power failure may leave an empty file, or none.
"""

from __future__ import annotations

import errno
import fcntl
import os
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hybrid.folder_setting import FolderSetting

_THREADS = 8
_NO_SUCH_CALL = {errno.EINVAL, errno.EBADF, errno.ENOTSUP}
_ENABLED = FolderSetting(True)


def configure(home: Path, enabled: bool) -> None:
    """Sets whether a home's files are synced, as its setting `durable` says. Else only deaths of processes are safe."""
    _ENABLED.set(home, enabled)


def is_enabled(path: Path) -> bool:
    """Whether what is written at a path is synced."""
    return _ENABLED.at(path)


def sync(path: Path) -> None:
    """Stores the bytes of a file, or the names in a folder. It returns when the device has them.

    A folder that its user may not read, or whose file system cannot sync folders, is skipped, as PostgreSQL does.
    """
    if not is_enabled(path):
        return
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except PermissionError:
        if path.is_dir():
            return
        raise
    try:
        _sync_descriptor(descriptor)
    except OSError as error:
        if error.errno not in _NO_SUCH_CALL or not path.is_dir():
            raise
    finally:
        os.close(descriptor)


def sync_files(paths: Iterable[Path], root: Path) -> None:
    """Stores files and their names, and the names of their folders up to `root`. Each folder is synced once.

    All side by side: which of them is stored first does not matter, because nothing names them yet.
    """
    files = list(paths)
    _sync_all([*files, *_folders(files, root)])


def sync_folders(paths: Iterable[Path], root: Path) -> None:
    """Stores the names of files whose bytes are stored, and the names of their folders up to `root`."""
    _sync_all(_folders(paths, root))


def _folders(paths: Iterable[Path], root: Path) -> list[Path]:
    return sorted({folder for path in paths for folder in path.parents if folder == root or root in folder.parents})


def sync_tree(root: Path) -> None:
    """Stores every file and folder below `root`, and `root`. Its own name is stored with its parent."""
    _sync_all([root, *(path for path in root.rglob("*") if not path.is_symlink())])


def write_text(path: Path, text: str) -> None:
    """Writes a file in place of what is there. Readers see the old or the new one whole, also after a power failure."""
    fresh = write_beside(path, text)
    fresh.rename(path)
    sync(path.parent)


def write_beside(path: Path, text: str) -> Path:
    """Writes a file with its bytes stored, under a name of its own in the folder of `path`; that name."""
    fresh = path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")
    with fresh.open("w", encoding="utf-8") as file:
        file.write(text)
    sync(fresh)
    return fresh


def rename(source: Path, target: Path) -> None:
    """Renames a file or folder, and stores both folders' names."""
    source.rename(target)
    sync(target.parent)
    if source.parent != target.parent:
        sync(source.parent)


def make_folder(path: Path) -> None:
    """Makes a folder and its parents, and stores the names of those that were not there."""
    absent = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in reversed(absent):
        sync(folder.parent)


def make_private(path: Path) -> None:
    """Makes a folder that only its user may enter, with its parents. One that is there keeps its mode."""
    if not path.exists():
        make_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
        sync(path.parent)


def _sync_all(paths: list[Path]) -> None:
    """Side by side: the file system stores several with one write of its journal."""
    paths = [path for path in paths if is_enabled(path)]
    if len(paths) < 2:
        for path in paths:
            sync(path)
        return
    with ThreadPoolExecutor(min(_THREADS, len(paths))) as pool:
        for _ in pool.map(sync, paths):
            pass


def _sync_descriptor(descriptor: int) -> None:
    full = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: fsync leaves the bytes in the device's cache
    if full is not None:
        try:
            fcntl.fcntl(descriptor, full)
            return
        except OSError:  # a file system that has no such call
            pass
    os.fsync(descriptor)
