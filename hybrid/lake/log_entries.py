"""The entries of a Delta log, read without an engine: commits of ours and of others, and the files that they add."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from hybrid.table.columns import SEGMENT, TIME
from hybrid.table.state import Act, HalfState, from_user_metadata

_ENTRY = re.compile(r"\d{20}\.json")
_ENTRY_OR_CHECKPOINT = re.compile(r"\d{20}\.(?:json|checkpoint.*\.parquet)")


@dataclass(frozen=True)
class DataFile:
    """One Parquet file of a half. `low` and `high` hold the minimum and maximum of the columns with statistics."""

    path: str
    segment: str
    rows: int
    bytes: int
    modified_ms: int
    low: Mapping[str, object] = field(default_factory=dict)
    high: Mapping[str, object] = field(default_factory=dict)

    @property
    def times(self) -> tuple[int, int] | None:
        """The first and last time of a row, epoch ms; None without such statistics."""
        first, last = self.low.get(TIME), self.high.get(TIME)
        return (first, last) if isinstance(first, int) and isinstance(last, int) else None

    def may_reach(self, start: int | None, end: int | None) -> bool:
        """Whether a row may have a time in [start, end). True when the times are unknown."""
        if self.times is None or start is None or end is None:
            return True
        return self.times[0] < end and start <= self.times[1]


@dataclass(frozen=True)
class Commit:
    """One version of a half as a difference. `state` None: a foreign commit, which keeps the half's state.

    Files that only rewrite existing rows (OPTIMIZE) are in neither `added` nor `removed`; the new ones are `rewritten`.
    """

    version: int
    state: HalfState | None
    added: tuple[DataFile, ...]
    removed: tuple[str, ...]
    is_plain: bool  # False when it also changes the schema or the protocol, so that the difference is incomplete
    rewritten: tuple[DataFile, ...] = ()


def last_time(files: Iterable[DataFile]) -> int | None:
    """The latest time of a row in some files, epoch ms, by their statistics; None without such statistics."""
    times = [file.high.get(TIME) for file in files]
    return max((time for time in times if isinstance(time, int)), default=None)


def read_commit(path: Path, version: int) -> Commit | None:
    """The commit that made `version`; None when it does not exist yet, or when the log was cleaned past it."""
    if not has_entry(path, version):  # the usual case: whoever follows a log polls
        return None
    try:
        text = entry_path(path, version).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    actions = [json.loads(line) for line in text.split("\n") if line]
    infos = [action["commitInfo"] for action in actions if "commitInfo" in action]
    state = from_user_metadata(infos[0].get("userMetadata")) if infos else None
    adds = [action["add"] for action in actions if "add" in action]
    removed = [
        action["remove"] for action in actions if "remove" in action and action["remove"].get("dataChange", True)
    ]
    return Commit(
        version,
        state,
        tuple(_added_file(path, add) for add in adds if add.get("dataChange", True)),
        tuple(absolute_path(path, str(remove["path"])) for remove in removed),
        not any("metaData" in action or "protocol" in action for action in actions),
        tuple(_added_file(path, add) for add in adds if not add.get("dataChange", True)),
    )


def commits_to(path: Path, newest: int, segment: str) -> Iterator[Commit]:
    """The commits that wrote files of a segment, newest first, as far back as the log reaches."""
    for version in range(newest, -1, -1):
        try:
            text = entry_path(path, version).read_text(encoding="utf-8")
        except FileNotFoundError:
            return
        if segment not in text:  # most entries; reading one as JSON costs a hundred times as much
            continue
        commit = read_commit(path, version)
        if commit is not None and any(file.segment == segment for file in commit.added):
            yield commit


def newest_version(path: Path, known: int) -> int:
    """The newest version of a half, of which `known` is a version. Checks only the following log entries."""
    while is_followed(path, known):
        known += 1
    return known


def newest_listed(path: Path) -> int | None:
    """The newest version with an entry or a checkpoint in a log's folder, whatever is missing below; None: none."""
    names = (entry.name for entry in os.scandir(path / "_delta_log"))
    return max((int(name[:20]) for name in names if _ENTRY_OR_CHECKPOINT.fullmatch(name)), default=None)


def newest_entry(path: Path) -> int:
    """The newest version with an entry in a log's folder; -1 without any, or without a folder."""
    try:
        names = [entry.name for entry in os.scandir(path / "_delta_log")]
    except FileNotFoundError:
        return -1
    return max((int(name[:20]) for name in names if _ENTRY.fullmatch(name)), default=-1)


def is_followed(path: Path, version: int) -> bool:
    """Whether a commit follows `version` of a half. One file system call."""
    return has_entry(path, version + 1)


def has_entry(path: Path, version: int) -> bool:
    """Whether the log holds the commit of `version`."""
    return os.path.exists(f"{path}/{_entry(version)}")  # each statement calls this, and building a Path takes longer


def entry_stamp(path: Path, version: int) -> tuple[int, ...] | None:
    """What tells the commit of `version` from one of a table created later at the same path; None without the entry."""
    try:
        found = os.stat(f"{path}/{_entry(version)}")
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def state_at(path: Path, version: int) -> HalfState | None:
    """The state that the commit at `version` carries; None when that commit is foreign or missing."""
    return from_user_metadata(_user_metadata(path, version))


def own_states(path: Path, newest: int) -> Iterator[tuple[int, HalfState]]:
    """(version, state) of every own commit that the log still holds, newest first."""
    for version in range(newest, -1, -1):
        state = state_at(path, version)
        if state is not None:
            yield version, state
        elif not has_entry(path, version):  # the log has been cleaned up to here
            return


def fence_at(path: Path, version: int, fence: str) -> int | None:
    """The number that the newest own commit up to `version` gave the fence; -1 without any.

    It is in the commit's `txn` action. None when the log no longer holds the newest own commit.
    """
    for number in range(version, -1, -1):
        try:
            text = entry_path(path, number).read_text(encoding="utf-8")
        except FileNotFoundError:  # the log has been cleaned up to here
            return None
        for line in text.split("\n"):
            if line.startswith('{"txn"') and (action := json.loads(line)["txn"])["appId"] == fence:
                return int(action["version"])
    return -1


def acts_between(path: Path, after: int, last: int) -> list[Act] | None:
    """The own operations of versions above `after` up to `last`; None when the log no longer holds all of them."""
    acts = []
    for version in range(after + 1, last + 1):
        if not has_entry(path, version):
            return None
        state = state_at(path, version)
        if state is not None:
            acts.append(state.act)
    return acts


def foreign_between(path: Path, after: int, last: int) -> bool:
    """Whether a foreign commit changed rows or columns in the versions above `after` up to `last`, or may have.

    Commits that only rewrite files (OPTIMIZE) change neither.
    """
    for version in range(after + 1, last + 1):
        commit = read_commit(path, version)
        if commit is None:
            return True
        if commit.state is None and (commit.added or commit.removed or not commit.is_plain):
            return True
    return False


def entry_path(path: Path, version: int) -> Path:
    """The file with the commit of `version` of a half."""
    return path / _entry(version)


def _entry(version: int) -> str:
    return f"_delta_log/{version:020d}.json"


def _user_metadata(path: Path, version: int) -> str | None:
    try:
        text = entry_path(path, version).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    for line in text.split("\n"):  # not splitlines(): JSON may hold U+2028 and the like unescaped
        if line.startswith('{"commitInfo"'):
            metadata = json.loads(line)["commitInfo"].get("userMetadata")
            return metadata if isinstance(metadata, str) else None
    return None


def _added_file(root: Path, add: Mapping[str, Any]) -> DataFile:
    statistics = json.loads(add.get("stats") or "{}")
    return DataFile(
        path=absolute_path(root, str(add["path"])),
        segment=str(add["partitionValues"].get(SEGMENT)),
        rows=int(statistics.get("numRecords", 0)),
        bytes=int(add.get("size", 0)),
        modified_ms=int(add.get("modificationTime", 0)),
        low=statistics.get("minValues", {}),
        high=statistics.get("maxValues", {}),
    )


def absolute_path(root: Path, written: str) -> str:
    """The path of a file as an entry of the log under `root` writes it: percent-encoded, mostly relative."""
    path = unquote(written)
    return path if path.startswith("/") else f"{root}/{path}"  # a Path for each of 100,000 files would take seconds
