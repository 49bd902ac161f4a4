"""Makes a half of a mirror as the store has it, also where objects were written again in place, as a purge does.

Entries and checkpoints are compared by size and ETag, which is the MD5 of most objects, else by their bytes: once for
each ETag, since this process remembers what was the same. A data file never changes under its name, so its size says
enough. Call these functions under the half's lock.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hybrid.errors import ConflictError, StoreError
from hybrid.lake.entry_file import is_same_commit, replace_entry
from hybrid.lake.half_head import forget_head
from hybrid.lake.log_entries import newest_entry
from hybrid.lake.store_log import entry_of
from hybrid.store.mirror import Mirror, for_all
from hybrid.store.store_client import ListedObject

# Beside a half's log while it is brought as a whole. Vacuum leaves names that begin like this alone.
FRESH_LOG, OLD_LOG = "_delta_log.fresh", "_delta_log.old"
_LOG = "_delta_log/"
_ENTRY = re.compile(r"\d{20}\.json")
_CHECKPOINT = re.compile(r"\d{20}\.checkpoint.*\.parquet")
# Files that had the bytes of an object: its ETag, and inode, time of change and size of the file then.
_SAME_BYTES: dict[Path, tuple[str, tuple[int, int, int]]] = {}


@dataclass(frozen=True)
class HalfObjects:
    """The objects of a half on the store, by their paths below it: files of its log, and all others."""

    log: dict[str, ListedObject]
    data: dict[str, ListedObject]

    @classmethod
    def of(cls, mirror: Mirror, half: Path, listed: Sequence[ListedObject]) -> HalfObjects:
        """Those of a half in a list of objects."""
        prefix = f"{mirror.key_of(half)}/"
        names = {item.key.removeprefix(prefix): item for item in listed if item.key.startswith(prefix)}
        log = {name.removeprefix(_LOG): item for name, item in names.items() if name.startswith(_LOG)}
        return cls(log, {name: item for name, item in names.items() if not name.startswith(_LOG)})

    @property
    def entries(self) -> list[str]:
        """The names of the log's entries, oldest first."""
        return sorted(name for name in self.log if _ENTRY.fullmatch(name))

    @property
    def checkpoints(self) -> list[str]:
        """The names of the log's checkpoints."""
        return sorted(name for name in self.log if _CHECKPOINT.fullmatch(name))


def refresh_log(mirror: Mirror, half: Path, objects: HalfObjects) -> int:
    """Let the entries that the mirror has, and all checkpoints, be as the store's; how many were not.

    ConflictError when the mirror's newest entry is another commit than the store's.
    """
    log, newest = half / _LOG, f"{newest_entry(half):020d}.json"
    differing = [
        name for name in objects.entries if (log / name).exists() and not has_same_bytes(log / name, objects.log[name])
    ]
    changed = list[str]()

    def refresh(name: str) -> None:
        if _refresh_entry(mirror, half, objects.log[name], name == newest):
            changed.append(name)

    for_all(refresh, [name for name in differing if name == newest])  # first: its conflict changes nothing
    for_all(refresh, [name for name in differing if name != newest])
    lacking = [name for name in objects.checkpoints if not has_same_bytes(log / name, objects.log[name])]

    def fetch(name: str) -> None:
        if mirror.fetch(objects.log[name].key, log / name):
            _SAME_BYTES[log / name] = objects.log[name].etag, _stamp(log / name)

    for_all(fetch, lacking)
    if changed or lacking:
        forget_head(half)
    return len(changed) + len(lacking)


def _refresh_entry(mirror: Mirror, half: Path, item: ListedObject, is_newest: bool) -> bool:
    path = half / _LOG / item.key.rpartition("/")[2]
    version, here = int(path.name[:20]), path.read_text(encoding="utf-8")
    text = entry_of(mirror, half, version)
    if text is None:  # cleaned just now
        return False
    if is_newest and not is_same_commit(text, here):
        raise ConflictError(
            f"{half}: its log is not that of {mirror.url}: version {version} differs. Nothing was changed.",
            hint="hybrid warehouse sync, if this home writes the warehouse; else pull into an empty home: --home DIR",
        )
    if text != here:
        replace_entry(path, text)
    # If the object was replaced since it was listed, the next list has another ETag.
    _SAME_BYTES[path] = item.etag, _stamp(path)
    return text != here


def bring_lacking(mirror: Mirror, half: Path, objects: HalfObjects) -> int:
    """Bring the data files that the mirror lacks, whatever names them, with the store's time; how many.

    StoreError when the store has another size of one than the mirror.
    """

    def bring(name: str) -> None:
        item, path = objects.data[name], half / name
        if mirror.fetch(item.key, path):
            moment = item.modified.timestamp()
            os.utime(path, (moment, moment))

    for name, item in objects.data.items():
        path = half / name
        if path.is_file() and path.stat().st_size != item.size:
            raise StoreError(
                f"{mirror.url}: {item.key} has {item.size} bytes, but the file of this home has {path.stat().st_size}."
            )
    lacking = [name for name in objects.data if not (half / name).is_file()]
    for_all(bring, lacking)
    return len(lacking)


def pull_leftovers(half: Path) -> list[Path]:
    """What killed processes have left of bringing a half: parts of files, and whole logs beside its own."""
    logs = (half / name for name in (FRESH_LOG, OLD_LOG))
    return [*sorted(half.glob("*/*.parquet.*.part")), *(path for path in logs if path.is_dir())]


def remove_pull_leftovers(half: Path) -> None:
    """Remove `pull_leftovers`. Whoever brings a half holds its lock, so nobody is at them."""
    for path in pull_leftovers(half):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def has_same_bytes(path: Path, item: ListedObject) -> bool:
    """Whether a file has the bytes of an object for sure, by its ETag: as an MD5, or as it is remembered."""
    try:
        if _SAME_BYTES.get(path) == (item.etag, _stamp(path)):
            return True
        data = path.read_bytes()
    except FileNotFoundError:
        return False
    digest = hashlib.md5(data, usedforsecurity=False).hexdigest()
    return len(data) == item.size and item.etag.strip('"') == digest


def _stamp(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_ctime_ns, status.st_size
