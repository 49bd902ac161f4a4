"""Log cleanup: removes the part of a half's log that no version in the revert window needs (docs/adr/0017).

  [expired entries] cut [entries that stay ...] base [...] oldest [... the window ...] newest
                    ^ newest own commit, or     ^ a checkpoint: from here on every version can be read
                      the base where it is older

`oldest` is the version that was the newest one when the window began. Only own commits hold the half's state, because
checkpoints do not keep it. So the newest own commit up to `oldest` stays, with everything after it.

The order of deletion. After a crash Spark and delta-rs can still read the log, and `hybrid doctor` finds it whole:
  copy the operations that outlive the log           nothing is gone
  write a checkpoint where no good one exists        one more checkpoint
  read the base once, check the hint                 nothing is gone; without a hint readers list the folder
  delete checkpoints below the cut                   entries alone make the oldest versions
  delete entries below the cut, the oldest first     the log begins a little later
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybrid.errors import DataError
from hybrid.lake.checkpoint import (
    HINT,
    delete_file,
    delete_on_store,
    hinted_version,
    store_checkpoint,
    write_checkpoint,
)
from hybrid.lake.lineage_archive import VersionedAct, keep_acts, outlives_log, store_archive
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.table.state import Act, from_user_metadata

_ENTRY = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?\.parquet")
_CHECKSUM = re.compile(r"(\d{20})\.crc")
_COMPACTED = re.compile(r"\d{20}\.(\d{20})\.compacted\.json")
# Tables with these features keep log files in other places, or define themselves what must stay.
_OTHERS = (
    "v2Checkpoint",
    "checkpointProtection",
    "catalogManaged",
    "catalogOwned-preview",
    "coordinatedCommits-preview",
)
# Delta writes a checkpoint every ten commits. Fewer commits do not justify one of our own.
_WORTH = 10


@dataclass(frozen=True)
class Expired:
    """The part of a log that can be deleted: the number of commits, and `files`, in the order of deletion.

    `bytes` is the size of these files. `base` is the version whose checkpoint all later versions are read from;
    `is_written` is False when that checkpoint has to be written first. `kept` are the operations that outlive the log.
    `why` says why nothing is deleted, as the end of a sentence.
    """

    commits: int = 0
    bytes: int = 0
    cut: int = 0
    base: int = 0
    is_written: bool = True
    files: tuple[Path, ...] = ()
    kept: tuple[VersionedAct, ...] = ()
    why: str = ""


def expired_log(half: HalfSnapshot, before_ms: int) -> Expired:
    """What only versions older than the newest one at `before_ms` (epoch ms) need. Needs no JVM, changes nothing."""
    other = sorted(set(_OTHERS) & half.features)
    if other:
        return Expired(why=f"the table has Delta's feature {other[0]}, with which its log is left alone")
    log = _Log.of(half.path)
    there = [version for version in log.entries if version <= half.version]  # others may have committed since
    if not there or there != list(range(there[0], half.version + 1)):
        return Expired(why="its log has gaps (hybrid doctor tells where)")
    before = dict(log.commits_before(before_ms))
    own = max((version for version, act in before.items() if act is not None), default=None)
    if own is None or own == log.entries[0]:
        return Expired(why="no commit is old enough and followed by another one")
    base = max((version for version in log.checkpoints if version <= max(before)), default=None)
    cut = own if base is None else min(base, own)
    is_written = base is not None
    if base is None or own - base > _WORTH:
        cut = base = own
        is_written = own in log.checkpoints
        if own - log.entries[0] < _WORTH:
            return Expired(why="too few commits are old enough to write a checkpoint for")
    if cut <= log.entries[0]:
        return Expired(why="the oldest commits are the ones that readers start from")
    surviving_acts = tuple(
        (version, act) for version, act in before.items() if version < cut and act and outlives_log(act)
    )
    files = tuple(log.files_below(cut))
    return Expired(cut - log.entries[0], _bytes_of(files), cut, base, is_written, files, surviving_acts)


def remove_expired(half: HalfSnapshot, expired: Expired) -> None:
    """Delete what `expired_log` found; some of it may be gone already. Call it under the half's lock.

    Raises DataError before any deletion when the base version cannot be read.
    """
    if open_half(half.path).table_id != half.table_id:
        raise DataError(f"{half.path}: the table was created again meanwhile. Nothing of its log was removed.")
    keep_acts(half.path, half.table_id, expired.kept)
    store_archive(half.path)
    if not expired.is_written:
        write_checkpoint(half.path, expired.base)
    checkpoints = _Log.of(half.path).checkpoints
    if expired.base not in checkpoints:  # a purge deleted the checkpoint; readers start from the entries instead
        raise DataError(f"{half.path}: the log was changed meanwhile. Nothing of it was removed.", hint="Run it again.")
    _ = open_half(half.path, expired.base).files  # every later version depends on the base: prove that it is readable
    hinted = hinted_version(half.path)
    if hinted is not None and (hinted < expired.cut or hinted not in checkpoints):
        delete_on_store(half.path, [half.path / "_delta_log" / HINT])
        delete_file(half.path / "_delta_log" / HINT)
    store_checkpoint(half.path, checkpoints[expired.base])
    delete_on_store(half.path, expired.files)
    for path in expired.files:
        delete_file(path)


@dataclass(frozen=True)
class _Log:
    """A listing of a log's folder: versions, ascending, and the complete checkpoints with their files."""

    folder: Path
    entries: list[int]
    checkpoints: Mapping[int, list[Path]]
    names: list[str]

    @classmethod
    def of(cls, half: Path) -> _Log:
        folder = half / "_delta_log"
        names = sorted(path.name for path in folder.iterdir())
        entries = [int(match[1]) for name in names if (match := _ENTRY.fullmatch(name))]
        parts: dict[int, dict[tuple[str, str], Path]] = defaultdict(dict)
        for name in names:
            if match := _CHECKPOINT.fullmatch(name):
                parts[int(match[1])][match[2] or "1", match[3] or "1"] = folder / name
        whole = {
            version: list(paths.values())
            for version, paths in parts.items()
            if any(sum(total == mine for _, total in paths) == int(mine) for _, mine in paths)
        }
        return cls(folder, entries, whole, names)

    def commits_before(self, before_ms: int) -> Iterator[tuple[int, Act | None]]:
        """(version, own operation or None) of the commits up to a time, oldest first; ends at the first later commit.

        A commit's time is the later of its entry's timestamp and its file's modification time, because copied files
        have a new one. As in Delta, it is never before that of an older commit, whatever the clocks were.
        """
        for version in self.entries:
            path = self.folder / f"{version:020d}.json"
            if path.stat().st_mtime_ns // 1_000_000 > before_ms:
                return
            info = _commit_info(path)
            timestamp_ms = max(int(info.get("timestamp") or 0), int(info.get("inCommitTimestamp") or 0))
            if timestamp_ms > before_ms:
                return
            state = from_user_metadata(metadata if isinstance(metadata := info.get("userMetadata"), str) else None)
            yield version, state.act if state is not None else None

    def files_below(self, cut: int) -> Iterator[Path]:
        """The files that only describe versions below `cut`, in the order of deletion."""
        for name in self.names:
            match = _CHECKPOINT.fullmatch(name) or _CHECKSUM.fullmatch(name) or _COMPACTED.fullmatch(name)
            if match and int(match[1]) < cut:
                yield self.folder / name
        for version in self.entries:
            if version < cut:
                yield self.folder / f"{version:020d}.json"


def _commit_info(entry: Path) -> dict[str, Any]:
    with entry.open(encoding="utf-8") as lines:
        for line in lines:
            if line.startswith('{"commitInfo"'):
                info = json.loads(line)["commitInfo"]
                return info if isinstance(info, dict) else {}
    return {}


def _bytes_of(files: Iterable[Path]) -> int:
    size = 0
    for path in files:
        with suppress(FileNotFoundError):
            size += path.stat().st_size
    return size
