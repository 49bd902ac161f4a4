"""The file of a log entry: gives a text its version in a half's local log, if no commit has that version."""

from __future__ import annotations

import errno
import json
import os
from contextlib import suppress
from enum import Enum
from pathlib import Path

from hybrid.errors import DataError
from hybrid.lake.log_entries import entry_path
from hybrid.runtime import durable

# The ending of a file of a log while it is written again; a writer that is killed leaves it.
REWRITTEN = ".purged"
_INFO = '{"commitInfo"'
# With these errors a file system has certainly not given the entry its name. Others may come from a server that has.
_REFUSALS = {
    errno.EACCES, errno.EDQUOT, errno.EMLINK, errno.ENOENT, errno.ENOSPC, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP,
    errno.EPERM, errno.EROFS, errno.EXDEV,
}  # fmt: skip


class Put(Enum):
    """What became of an entry: `UNKNOWN` when its version is free, but the writing may yet succeed."""

    MADE = "made"
    EXISTS = "exists"
    UNKNOWN = "unknown"


def link_entry(half: Path, version: int, text: str) -> Put:
    """`put_entry` to the local folder of a half."""
    path = entry_path(half, version)
    try:
        fresh = durable.write_beside(path, text)
    except OSError as error:
        raise not_written(half, version, error) from error
    try:
        os.link(fresh, path)  # and not `rename_new`, which has empty files where there are no links
    except OSError as error:
        made = _put_by(path)
        if made is not None:  # the file system may have failed after it made the name, or have asked its server twice
            return Put.MADE if made == _id_in(text) else Put.EXISTS
        if error.errno in _REFUSALS:
            raise not_written(half, version, error) from error
        return Put.UNKNOWN
    finally:
        with suppress(OSError):  # what has become of the entry is told; `unfinished_entries` are removed later
            fresh.unlink()
    return Put.MADE


def unfinished_entries(half: Path) -> list[Path]:
    """What writers that were killed left of entries, under the half's lock. No reader of a log looks at it."""
    return sorted((half / "_delta_log").glob("*.json.*.part"))


def remove_unfinished(half: Path) -> None:
    """Remove what killed writers left. Call it under the half's lock."""
    for path in unfinished_entries(half):
        path.unlink(missing_ok=True)


def not_written(half: Path, version: int, error: OSError) -> DataError:
    """The error for an entry that the disk has certainly not taken."""
    return DataError(f"{half}: the log entry of version {version} was not written: {error}")


def replace_entry(entry: Path, text: str) -> None:
    """Give an entry another text, and keep its time. Callers must hold the half's lock."""
    status = entry.stat()
    # Delta reads a commit's time from it.
    replace_log_file(entry, text.encode(), times_ns=(status.st_atime_ns, status.st_mtime_ns))


def replace_log_file(path: Path, data: bytes, *, times_ns: tuple[int, int] | None = None) -> None:
    """Give a file of a log other bytes, whole and synced, and these times; None: those of now."""
    fresh = path.with_name(f".{path.name}{REWRITTEN}")
    fresh.write_bytes(data)
    if times_ns is not None:
        os.utime(fresh, ns=times_ns)
    # Hadoop verifies a file against the checksum beside it.
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    durable.sync(fresh)
    durable.rename(fresh, path)


def is_same_commit(text: str, other: str) -> bool:
    """Whether two texts of a version are one commit, of which a purge has written one again.

    By the writing's id; where another tool gave none, by the time and by all but what a purge takes away.
    """
    if text == other:
        return True
    ids = _id_in(text), _id_in(other)
    return ids[0] == ids[1] if any(ids) else _lasting(text) == _lasting(other)


def _lasting(text: str) -> list[object]:
    """What a purge or an erasure never changes of an entry: the time, the paths of files, and other actions."""
    lasting = list[object]()
    for line in filter(None, text.split("\n")):
        action = json.loads(line)
        kind, content = next(iter(action.items()))
        if kind == "commitInfo":
            lasting.append((kind, content.get("timestamp")))
        else:
            lasting.append((kind, content["path"]) if kind in ("add", "remove") else action)
    return lasting


def _put_by(path: Path) -> str | None:
    """The id of the writing that made an entry; empty for another writer's, None without an entry that can be read."""
    try:
        return _id_in(path.read_text(encoding="utf-8"))
    except OSError:
        return None


def _id_in(text: str) -> str:
    for line in text.split("\n"):
        if line.startswith(_INFO):
            return str(json.loads(line)["commitInfo"].get("txnId", ""))
    return ""
