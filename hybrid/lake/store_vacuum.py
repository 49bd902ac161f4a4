"""Vacuum of a half on its warehouse's store: what vacuum removed from the mirror, and objects that no commit names.

What goes is told by the log, never by what the mirror's folder lacks: a file that was lost there may be the store's
only good one.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hybrid.errors import DataError
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.lake.store_log import added_by
from hybrid.store.mirror import Mirror

_MS = 1000


def require_files(half: HalfSnapshot) -> None:
    """DataError when the mirror lacks a current file: then nothing of the store may go by its log."""
    lost = next((file.path for file in half.files if not Path(file.path).is_file()), None)
    if lost is not None:
        raise DataError(f"{lost} is missing, so nothing of the store goes.", hint="hybrid warehouse pull (brings it)")


def remove_from_store(mirror: Mirror, half: HalfSnapshot, removed: Iterable[Path], window_ms: int) -> int:
    """Delete files that vacuum removed, and files older than the window, if no commit names them. Returns their number.

    The age is that of the store's clock. Call it under the half's lock, after the mirror has caught up with the store.
    """
    current = {file.path for file in half.files}
    names = {str(path.relative_to(half.path)) for path in removed if str(path) not in current}
    if old := _old(mirror, half, window_ms):
        names |= set(old) - _named(half)
    mirror.delete(half.path, sorted(names))
    return len(names)


def _old(mirror: Mirror, half: HalfSnapshot, window_ms: int) -> list[str]:
    """The data files on the store that are older than the window."""
    before_s = mirror.client.time().store_s - window_ms / _MS
    prefix = f"{mirror.key_of(half.path)}/"
    return [
        item.key.removeprefix(prefix)
        for item in mirror.client.list_below(mirror.key_of(half.path))
        if item.modified.timestamp() < before_s and not item.key.startswith(f"{prefix}_delta_log/")
    ]


def _named(half: HalfSnapshot) -> set[str]:
    """The files, by decoded path below the half, that some version that can be read has."""
    log = half.path / "_delta_log"
    entries = sorted(log.glob("[0-9]*.json"))
    versions = [open_half(half.path).files]
    if entries and int(entries[0].name[:20]) > 0:  # what lies before is in the oldest checkpoint alone
        checkpoints = sorted(path.name for path in log.glob("[0-9]*.checkpoint*.parquet"))
        versions += [open_half(half.path, int(checkpoints[0][:20])).files] if checkpoints else []
    names = {file.path.removeprefix(f"{half.path}/") for files in versions for file in files}
    for path in entries:
        names |= {file.name for file in added_by(half.path, path.read_text(encoding="utf-8"))}
    return names
