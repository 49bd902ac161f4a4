"""Files that survive a power failure: write, sync, rename, sync the folder. See docs/adr/0024-durability.md.

A file's bytes and its name are stored separately. `fsync` on the file stores the bytes; `fsync` on its folder stores
the name. Without either, a power failure may leave an empty file, or none.
"""

from __future__ import annotations

import errno
import fcntl
import os
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hybrid.errors import MachineError
from hybrid.runtime.folder_setting import FolderSetting

_THREADS = 8
_NO_SUCH_CALL = {errno.EINVAL, errno.EBADF, errno.ENOTSUP}
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
_ENABLED = FolderSetting(True)


def configure(home: Path, enabled: bool) -> None:
    """Set whether a home's files are synced, by its setting `durable`.

    Without it, files survive process crashes only.
    """
    _ENABLED.set(home, enabled)


def is_enabled(path: Path) -> bool:
    """Whether files written at a path are synced."""
    return _ENABLED.at(path)


def sync(path: Path) -> None:
    """Sync the bytes of a file, or the names in a folder. Returns when the device has them.

    A folder that the user may not read, or whose file system cannot sync folders, is skipped, as in PostgreSQL.
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
    """Sync files and their names, and the names of their folders up to `root`. Each folder is synced once.

    They are synced in parallel: the order does not matter, because nothing refers to them yet.
    """
    files = list(paths)
    _sync_all([*files, *_folders(files, root)])


def sync_folders(paths: Iterable[Path], root: Path) -> None:
    """Sync the names of files whose bytes are synced already, and the names of their folders up to `root`."""
    _sync_all(_folders(paths, root))


def _folders(paths: Iterable[Path], root: Path) -> list[Path]:
    return sorted({folder for path in paths for folder in path.parents if folder == root or root in folder.parents})


def sync_tree(root: Path) -> None:
    """Sync every file and folder below `root`, and `root`. Syncing its own name is left to the caller."""
    _sync_all([root, *(path for path in root.rglob("*") if not path.is_symlink())])


def write_text(path: Path, text: str, *, private: bool = False) -> None:
    """Replace a file atomically. Readers see the old or the new text as a whole, even after a power failure.

    `private`: only its user may read it, from its first byte on.
    """
    fresh = write_beside(path, text, private=private)
    fresh.rename(path)
    sync(path.parent)


def write_beside(path: Path, text: str, *, private: bool = False) -> Path:
    """Write a file and sync its bytes, under a new name in the folder of `path`. Returns that name."""
    fresh = path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        sync(fresh)
    except BaseException:  # such as a full disk, which the beginning of a file must not fill further
        fresh.unlink(missing_ok=True)
        raise
    return fresh


def create_text(path: Path, text: str, *, private: bool = False) -> bool:
    """Write a file unless one of that name exists; False then. Of processes that do so at once, one succeeds.

    Readers see no file or the text as a whole. Where the file system has no hard links, they may see an empty file
    for a moment.
    """
    fresh = write_beside(path, text, private=private)
    try:
        rename_new(fresh, path)
    except FileExistsError:
        return False
    finally:
        fresh.unlink(missing_ok=True)
    return True


def rename_new(source: Path, target: Path) -> None:
    """Rename a file within its folder, and sync its name. FileExistsError when a file with the new name exists."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # A file system without hard links: reserve the name with an empty file, then replace that.
        target.open("x").close()
        source.replace(target)
    else:
        source.unlink()
    sync(target.parent)


def rename(source: Path, target: Path) -> None:
    """Rename a file or folder, and sync the names in both folders."""
    source.rename(target)
    sync(target.parent)
    if source.parent != target.parent:
        sync(source.parent)


def make_folder(path: Path) -> None:
    """Make a folder and its parents, and sync the names of new ones."""
    absent = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in reversed(absent):
        sync(folder.parent)


def make_private(path: Path) -> None:
    """Make a folder that only its user may enter, with its parents. An existing folder keeps its mode.

    MachineError where no folder can be made; an OSError of a full disk is left to `runtime.disk`.
    """
    if path.exists():
        return
    try:
        make_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        message = f"The folder {path} cannot be made: {error.strerror}."
        raise MachineError(message, hint="Name another folder, for a home with --home DIR or HYBRID_HOME.") from error
    sync(path.parent)


def _sync_all(paths: list[Path]) -> None:
    """Sync in parallel: the file system then stores several with one write of its journal."""
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
        except OSError:  # a file system without this call
            pass
    os.fsync(descriptor)
