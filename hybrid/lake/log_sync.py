"""Syncs the entries of a Delta log to disk, and sets aside an unacknowledged entry that a power failure damaged.

Delta writes an entry under another name and renames it, without fsync. A commit is acknowledged after `sync_log`. So a
power failure can only damage the newest entry or its checkpoint, and only when it was not acknowledged.
"""

from __future__ import annotations

import json
import logging
import re
import time
from pathlib import Path
from urllib.parse import unquote

from hybrid.runtime import durable
from hybrid.runtime.file_lock import file_lock
from hybrid.table.state import from_user_metadata

_ENTRY = re.compile(r"\d{20}\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint.*\.parquet")
_SUMMARY = re.compile(r"(\d{20})\.crc")
_LAST = "_last_checkpoint"
TORN = ".torn"
# The own commits below a commit that are synced with it.
_OWN_MAX = 10


# The newest version of each half that this process has synced: older versions need no second check.
_STORED: dict[Path, int] = {}


def sync_log(half: Path, version: int) -> None:
    """Sync the entry of a version, the files that Delta wrote with it, and the log's folder. Call it under the lock.

    Foreign commits just below may not be synced. They are synced with their files, because the log must have no gap
    below an acknowledged commit. The own commits below it are synced too, whichever process made them: it may have
    been killed before it could. Of these the newest few are enough: nobody is killed that often in a row.
    """
    if not durable.is_enabled(half):
        return
    log, files = half / "_delta_log", _files_of_entry(half / "_delta_log", version)
    stored, own = _STORED.get(half, -1), 0
    for older in range(version - 1, stored if stored < version else -1, -1):
        older_files = _files_of_entry(log, older)
        files += older_files
        foreign = _data_of_foreign(half, older)
        if foreign is not None:
            durable.sync_files(foreign, half)
            continue
        own += 1
        if own == _OWN_MAX or not older_files:
            break
    durable.sync_files(files, log)
    _STORED[half] = version


def _files_of_entry(log: Path, version: int) -> list[Path]:
    """The existing files of a version: entry, checkpoint, and the checksums of both."""
    stem = f"{version:020d}"
    names = [f"{stem}.json", f".{stem}.json.crc", f"{stem}.crc", f".{stem}.crc.crc"]
    if (log / f"{stem}.checkpoint.parquet").exists():
        names += [f"{stem}.checkpoint.parquet", f".{stem}.checkpoint.parquet.crc", _LAST, f".{_LAST}.crc"]
    return [log / name for name in names if (log / name).exists()]


def _data_of_foreign(half: Path, version: int) -> list[Path] | None:
    """The existing files that a foreign commit added; None for an own commit, or without a commit."""
    try:
        text = (half / "_delta_log" / f"{version:020d}.json").read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    paths = []
    for line in text.split("\n"):
        if line.startswith('{"commitInfo"') and from_user_metadata(json.loads(line)["commitInfo"].get("userMetadata")):
            return None
        if line.startswith('{"add"'):
            paths.append(half / unquote(json.loads(line)["add"]["path"]))
    return [path for path in paths if path.exists()]


def set_torn_aside(half: Path, booted_ms: int | None = None) -> list[Path]:
    """Rename a half's newest entry and checkpoints that a power failure truncated. Returns their new paths.

    Only files from before the machine's start: later damage is a different case, for `hybrid doctor`. `booted_ms` is
    that moment, epoch ms; None reads it from the machine.
    """
    log = half / "_delta_log"
    booted = _booted_ms() if booted_ms is None else booted_ms
    if not _torn(log, booted):
        return []
    aside = []
    with file_lock(half.with_name(f"{half.name}.repair.lock")):
        for path in _torn(log, booted):  # again: another process may have renamed them before we had the lock
            target = path.with_name(f".{path.name}.{time.time_ns()}{TORN}")
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)  # Hadoop's checksum of the renamed file
            path.rename(target)
            aside.append(target)
            logging.getLogger(__name__).warning(
                "%s was cut short by a power failure before its commit was acknowledged; it lies in %s now.",
                path,
                target.name,
            )
        durable.sync(log)
    return aside


def _torn(log: Path, booted_ms: int) -> list[Path]:
    names = sorted(path.name for path in log.iterdir()) if log.is_dir() else []
    newest = max((name for name in names if _ENTRY.fullmatch(name)), default=None)
    if newest is None:
        return []

    def is_old(path: Path) -> bool:
        return path.stat().st_mtime_ns // 1_000_000 < booted_ms

    # The time first: it is known without reading the file.
    torn_paths = []
    if newest > f"{0:020d}.json" and is_old(log / newest) and _is_torn_entry(log / newest):
        torn_paths.append(log / newest)
    # Delta's summary of the table at a version that was lost. Delta would keep it for the commit that takes its place.
    last = newest[:20] if not torn_paths else f"{int(newest[:20]) - 1:020d}"
    summaries = [log / name for name in names if (match := _SUMMARY.fullmatch(name)) and match[1] > last]
    torn_paths += [path for path in summaries if is_old(path)]
    checkpoints = [log / name for name in names if (match := _CHECKPOINT.fullmatch(name)) and match[1] >= newest[:20]]
    torn_paths += [path for path in checkpoints if is_old(path) and _is_torn_checkpoint(path)]
    if _LAST in names and is_old(log / _LAST) and _is_torn_entry(log / _LAST):
        torn_paths.append(log / _LAST)
    return torn_paths


def _is_torn_entry(path: Path) -> bool:
    """Whether JSON lines are truncated, or zeros replace bytes that were not synced."""
    try:
        lines = [json.loads(line) for line in path.read_bytes().split(b"\n") if line]
    except ValueError:
        return True
    return not lines


def _is_torn_checkpoint(path: Path) -> bool:
    import pyarrow as pa  # takes longer to import than a query takes, and few queries meet such a checkpoint
    import pyarrow.parquet as pq

    try:
        pq.read_table(path)
    except (pa.ArrowException, OSError):
        return True
    return False


def _booted_ms() -> int:
    """When this machine started, epoch ms. Where the clock stops during sleep (macOS), later by that time."""
    clock: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return int((time.time() - time.clock_gettime(clock)) * 1000)
