"""The newest head of each half that this process has read, followed by the entries since instead of read again."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from deltalake import Metadata
from deltalake.table import ProtocolVersions

from hybrid.lake.log_entries import entry_path, entry_stamp, newest_listed, newest_version

_HEADS_MAX, _FOLLOWED_MAX = 2000, 50


@dataclass(frozen=True)
class HalfHead:
    """What a version of a half says of the half as a whole: metadata, protocol and columns, without its files.

    Commits of rows and states change none of them, so a process that has read a version follows the newest one by the
    entries since, however many files the half has.
    """

    version: int
    metadata: Metadata
    protocol: ProtocolVersions
    columns: str


# Each with the stamp of its version's entry, and when the folder of the log had last changed when no entry was newer.
_HEADS: dict[Path, tuple[HalfHead, tuple[int, ...], int | None]] = {}


def keep_head(path: Path, head: HalfHead, folder: int) -> None:
    """Keep the head of a log that was just read. `folder`: its folder, opened before that.

    While it is open, no folder of another log gets its number, so it tells whether the log is still the same.
    """
    stamp = entry_stamp(path, head.version)
    with suppress(OSError):
        if stamp is not None and os.path.samestat(os.fstat(folder), os.stat(path / "_delta_log")):
            if len(_HEADS) >= _HEADS_MAX:
                _HEADS.clear()
            _HEADS[path] = head, stamp, None


def forget_head(path: Path) -> None:
    """Let the next one who opens a half read its whole log."""
    _HEADS.pop(path, None)


def followed_head(path: Path) -> HalfHead | None:
    """The head of the newest version, by an older one and the entries since; None where the log has to be read.

    It has to for a foreign commit to columns or protocol, for many commits, for a log with a gap, and when the entry of
    the older version is not the same any more: the log was cleaned, rewritten or restored, or the table was created
    again.
    """
    kept = _HEADS.get(path)
    try:
        return None if kept is None else _follow(path, *kept)
    except (OSError, ValueError, TypeError, AttributeError):  # an entry that whoever reads the log judges
        return None


def _follow(path: Path, head: HalfHead, stamp: tuple[int, ...], looked_ns: int | None) -> HalfHead | None:
    if entry_stamp(path, head.version) != stamp:
        return None
    newest, changed_ns = newest_version(path, head.version), os.stat(path / "_delta_log").st_mtime_ns
    if newest == head.version and changed_ns == looked_ns:
        return head
    listed = newest_listed(path)
    newest = newest_version(path, newest)  # others may commit while the folder is listed
    # A gap, or a checkpoint without its entry.
    if listed is None or newest < listed or newest - head.version > _FOLLOWED_MAX:
        return None
    if not all(_keeps_head(path, version) for version in range(head.version + 1, newest + 1)):
        return None
    followed, newest_stamp = replace(head, version=newest), entry_stamp(path, newest)
    # Looked at after the entries were read: until then they were this table's.
    if newest_stamp is None or entry_stamp(path, head.version) != stamp:
        return None
    _HEADS[path] = followed, newest_stamp, changed_ns
    return followed


def _keeps_head(path: Path, version: int) -> bool:
    """Whether the commit of `version` leaves columns, properties and protocol. ValueError for a damaged entry."""
    text = entry_path(path, version).read_text(encoding="utf-8")
    actions = [json.loads(line) for line in text.split("\n") if line]
    return bool(actions) and not any({"metaData", "protocol"} & action.keys() for action in actions)
