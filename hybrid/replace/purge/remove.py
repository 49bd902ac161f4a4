"""Deletes files that no current version holds, with the log's values of their rows."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from hybrid.config.table_config import Half
from hybrid.lake.checkpoint import delete_file
from hybrid.lake.failpoints import step
from hybrid.lake.log import open_half
from hybrid.lake.table_context import TableContext
from hybrid.replace.purge.log_statistics import forget_values, logged_files
from hybrid.runtime import durable
from hybrid.store.mirror import mirror_at

# A file that no log entry names was left by a crash, or is about to be committed by a foreign tool.
UNKNOWN_FOR_S = 3600.0


def remove_dead(table: TableContext, half: Half, files: Collection[Path]) -> list[tuple[Path, int]]:
    """Deletes the files that the newest version does not hold; returns each with its size in bytes.

    It holds the half's lock, so that none of our commits is about to add one. The log's values are removed first,
    because without the file nobody would look for them. Values of already deleted files are removed too.
    """
    path = table.layout.half(half)
    with table.lock(half):
        current, logged = open_half(path), logged_files(path)
        current_files = {Path(file.path) for file in current.files}
        doomed = [file for file in sorted(set(files) - current_files) if is_left(file, path, logged)]
        forget_values(current, {file.relative_to(path).as_posix() for file in doomed}, logged)
        _delete_on_store(path, doomed)
        gone = []
        for file in doomed:
            size = file.stat().st_size if file.exists() else 0
            _delete(file)
            gone.append((file, size))
        if gone:  # else a power failure could bring deleted names back
            durable.sync_folders([path / "x", *(file for file, _ in gone if file.parent.exists())], path)
    return gone


def is_left(file: Path, half: Path, known: Collection[str]) -> bool:
    """Whether a file of no current version surely belongs to no commit in progress; the log names the files `known`."""
    return file.relative_to(half).as_posix() in known or is_old(file)


def is_old(file: Path) -> bool:
    """Whether a file was written an hour ago or earlier: whoever wrote it has ended."""
    try:
        return time.time() - file.stat().st_mtime > UNKNOWN_FOR_S
    except FileNotFoundError:
        return False


def _delete_on_store(half: Path, files: Sequence[Path]) -> None:
    """Deletes files on the warehouse's store, where it has one.

    Who writes is asked behind the look at the log. If another home takes over right after, it needs none of them: no
    commit names a file again.
    """
    mirror = mirror_at(half)
    if mirror is not None and files:
        mirror.ownership.require(is_recent_enough=False)
        mirror.delete(half, [file.relative_to(half).as_posix() for file in files])
        step("purge.removed")


def _delete(file: Path) -> None:
    """Deletes the file, and its folder when that is empty then."""
    delete_file(file)
    with suppress(OSError):
        file.parent.rmdir()
