"""Takes files away that no current version holds, with what the log still says of their rows."""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from hybrid.config.table_config import Half
from hybrid.lake.cleanup import delete_file
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import open_half
from hybrid.replace.purge.log_statistics import forget_values, logged_files
from hybrid.runtime import durable

# A file that no entry of the log names was left by a killed act, or is about to be committed by a foreign tool.
UNKNOWN_FOR_S = 3600.0


def remove_dead(
    bench: CommitContext, layout: TableLayout, half: Half, files: Collection[Path]
) -> list[tuple[Path, int]]:
    """Deletes those of `files` that the newest version does not hold; each with its size in bytes.

    Under the half's lock, so that no act of ours is about to commit one. What the log says of them goes first: without
    the file nobody would look for it. That of files that are gone already goes too.
    """
    path = layout.half(half)
    with bench.lock(layout, half):
        current, known = open_half(path), logged_files(path)
        held = {Path(file.path) for file in current.files}
        doomed = [file for file in sorted(set(files) - held) if is_left(file, path, known)]
        forget_values(current, {file.relative_to(path).as_posix() for file in doomed}, known)
        gone = []
        for file in doomed:
            size = file.stat().st_size if file.exists() else 0
            _delete(file)
            gone.append((file, size))
        if gone:  # a power failure brings no deleted name back
            durable.sync_folders([path / "x", *(file for file, _ in gone if file.parent.exists())], path)
    return gone


def is_left(file: Path, half: Path, known: Collection[str]) -> bool:
    """Whether a file that no current version holds is surely no part of a commit under way; `known` to the log."""
    if file.relative_to(half).as_posix() in known:
        return True
    try:
        return time.time() - file.stat().st_mtime > UNKNOWN_FOR_S
    except FileNotFoundError:
        return False


def _delete(file: Path) -> None:
    """The file, and its folder when it was the last one there."""
    delete_file(file)
    with suppress(OSError):
        file.parent.rmdir()
