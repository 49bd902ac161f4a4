"""Reads a half from its Delta log, without a JVM: version, state of the newest own commit, files with statistics."""

from __future__ import annotations

import json
import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import dropwhile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from hybrid.errors import DataError, NotFoundError
from hybrid.lake.lineage_archive import kept_acts
from hybrid.lake.log_sync import set_torn_aside
from hybrid.table.columns import SEGMENT, TIME
from hybrid.table.effective import EffectiveBoundary, effective_boundary
from hybrid.table.state import Act, HalfState, LineagePointer, OfflineState, RealtimeState, from_user_metadata

# The properties that list the columns that rows may lack, and the columns that files may hold in a narrower type.
ADDED, WIDENED = "hybrid.added", "hybrid.widened"


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


def listed_columns(properties: Mapping[str, str], which: str) -> list[str]:
    """The columns that one of a half's properties lists."""
    return list(json.loads(properties.get(which, "[]")))


class HalfSnapshot:
    """A half at one version of its log. Its files outlive every query that reads them (vacuum waits for days)."""

    def __init__(self, path: Path, table: DeltaTable) -> None:
        self.path = path
        self.version: int = table.version()
        self._table = table

    @cached_property
    def table_id(self) -> str:
        """The id of this Delta table. A table that was dropped and created again at the same path has another id."""
        return str(self._table.metadata().id)

    @cached_property
    def properties(self) -> Mapping[str, str]:
        """The properties of the Delta table."""
        return {name: str(value) for name, value in self._table.metadata().configuration.items()}

    @cached_property
    def features(self) -> frozenset[str]:
        """The Delta features that the table's protocol names."""
        protocol = self._table.protocol()
        return frozenset([*(protocol.reader_features or []), *(protocol.writer_features or [])])

    @cached_property
    def added(self) -> frozenset[str]:
        """The columns that were added later. Older rows hold nulls there, also after a move."""
        return frozenset(listed_columns(self.properties, ADDED))

    @cached_property
    def widened(self) -> frozenset[str]:
        """The columns whose type was widened. Older files hold the former type."""
        return frozenset(listed_columns(self.properties, WIDENED))

    @property
    def grown(self) -> frozenset[str] | None:
        """The columns that rows may lack; None when no column was added or widened."""
        return self.added if self.added or self.widened else None

    @cached_property
    def columns(self) -> str:
        """The stored columns with types and order as one text, for comparing schemas."""
        return self._table.schema().to_json()

    @cached_property
    def state(self) -> HalfState:
        """The state in the newest own commit at or before this version; foreign commits are skipped."""
        for _, state in own_states(self.path, self.version):
            return state
        raise DataError(f"{self.path}: no commit of hybrid's up to version {self.version}: not one of our tables.")

    @cached_property
    def files(self) -> tuple[DataFile, ...]:
        """The data files of this version, rejected rows' included, by segment and path."""
        files = [_data_file(self.path, row) for row in _rows_of(self._table)]
        return tuple(sorted(files, key=lambda file: (file.segment, file.path)))

    @property
    def realtime(self) -> RealtimeState:
        """The state of a REALTIME half."""
        assert isinstance(self.state, RealtimeState)
        return self.state

    @property
    def offline(self) -> OfflineState:
        """The state of an OFFLINE half."""
        assert isinstance(self.state, OfflineState)
        return self.state

    @property
    def last_ms(self) -> int | None:
        """The latest time of a row by the files' statistics, epoch ms; None without rows or without a time column."""
        return last_time(self.files)

    def files_of(self, segment: str) -> tuple[str, ...]:
        """The data files of a segment, as paths in the half. A file's content never changes under its name."""
        return self._paths.get(segment, ())

    @cached_property
    def _paths(self) -> Mapping[str, tuple[str, ...]]:
        """The data files of each segment, as `files_of` gives them."""
        paths_by_segment: dict[str, list[str]] = {}
        for file in self.files:
            paths_by_segment.setdefault(file.segment, []).append(file.path.removeprefix(f"{self.path}/"))
        return {segment: tuple(sorted(paths)) for segment, paths in paths_by_segment.items()}

    def with_files(self, files: Iterable[DataFile]) -> HalfSnapshot:
        """The half as if it held these files."""
        snapshot = HalfSnapshot(self.path, self._table)
        vars(snapshot)["files"] = tuple(sorted(files, key=lambda file: (file.segment, file.path)))
        return snapshot

    def effective_boundary(self, lag_ms: int) -> EffectiveBoundary:
        """The boundary in effect at this version of an OFFLINE half; `lag_ms` is mode pinot's lag."""
        return effective_boundary(self.offline.boundary, self.last_ms, lag_ms)


def last_time(files: Iterable[DataFile]) -> int | None:
    """The latest time of a row in some files, epoch ms, by their statistics; None without such statistics."""
    times = [file.high.get(TIME) for file in files]
    return max((time for time in times if isinstance(time, int)), default=None)


# Halves whose log this process has checked for torn files. A power failure ends the process, so once is enough.
_LOOKED_AT: set[Path] = set()


def open_half(path: Path, version: int | None = None) -> HalfSnapshot:
    """The half at `path`, at its newest version unless `version` is given.

    NotFoundError without a Delta table; DataError when its log cannot be read or no longer holds that version. The
    first call of a process sets aside what a power failure left of an unacknowledged commit.
    """
    if path not in _LOOKED_AT and path.is_dir():
        set_torn_aside(path)
        _LOOKED_AT.add(path)
    try:
        return HalfSnapshot(path, DeltaTable(str(path), version=version))
    except TableNotFoundError as error:
        if version is not None and any((path / "_delta_log").glob("[0-9]*.json")):
            raise DataError(f"{path}: the Delta log does not hold version {version} any more.") from error
        raise NotFoundError(f"There is no Delta table at {path}.") from error
    except DeltaError as error:
        raise DataError(f"{path}: the Delta log cannot be read at version {version or 'newest'}: {error}") from error


@dataclass(frozen=True)
class Commit:
    """One version of a half as a difference. `state` None: a foreign commit, which keeps the half's state.

    Files that only rewrite existing rows (OPTIMIZE) are left out of both lists.
    """

    version: int
    state: HalfState | None
    added: tuple[DataFile, ...]
    removed: tuple[str, ...]
    is_plain: bool  # False when it also changes the schema or the protocol, so that the difference is incomplete


def read_commit(path: Path, version: int) -> Commit | None:
    """The commit that made `version`; None when it does not exist yet, or when the log was cleaned past it."""
    if not has_entry(path, version):  # the usual case: whoever follows a log polls
        return None
    try:
        text = _log_entry(path, version).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    actions = [json.loads(line) for line in text.split("\n") if line]
    infos = [action["commitInfo"] for action in actions if "commitInfo" in action]
    state = from_user_metadata(infos[0].get("userMetadata")) if infos else None
    added = [action["add"] for action in actions if "add" in action and action["add"].get("dataChange", True)]
    removed = [
        action["remove"] for action in actions if "remove" in action and action["remove"].get("dataChange", True)
    ]
    return Commit(
        version,
        state,
        tuple(_added_file(path, add) for add in added),
        tuple(_absolute(path, str(remove["path"])) for remove in removed),
        not any("metaData" in action or "protocol" in action for action in actions),
    )


def commits_to(path: Path, newest: int, segment: str) -> Iterator[Commit]:
    """The commits that wrote files of a segment, newest first, as far back as the log reaches."""
    for version in range(newest, -1, -1):
        try:
            text = _log_entry(path, version).read_text(encoding="utf-8")
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


def is_followed(path: Path, version: int) -> bool:
    """Whether a commit follows `version` of a half. One file system call."""
    return has_entry(path, version + 1)


def has_entry(path: Path, version: int) -> bool:
    """Whether the log holds the commit of `version`."""
    return os.path.exists(f"{path}/{_entry(version)}")  # each statement calls this, and building a Path takes longer


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
            text = _log_entry(path, number).read_text(encoding="utf-8")
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


def lineage_acts(half: HalfSnapshot) -> Iterator[tuple[int, Act]]:
    """(version, act) of every replacement and revert of an OFFLINE half, newest first.

    Each one points to the previous one, so this reads one log entry per replacement, however many commits lie between.
    Entries that have left the log are read from the lineage archive.
    """
    pointer, newest = half.offline.last_lineage, half.version
    while pointer is not None:
        entry = next(_own_from(half.path, pointer.not_before, newest), None)
        if entry is None or entry[1].act.id != pointer.act:  # the log has been cleaned up to here
            yield from _kept_lineage(half, pointer)
            return
        version, act = entry[0], entry[1].act
        yield version, act
        previous = act.detail["previous"]
        pointer = LineagePointer(**previous) if isinstance(previous, dict) else None
        newest = version - 1


def segments_in_lineage(half: HalfSnapshot) -> set[str]:
    """Segments that replacements of an OFFLINE half removed or added. A revert may bring any of them back."""
    return segments_named_by(act for _, act in lineage_acts(half))


def segments_named_by(acts: Iterable[Act]) -> set[str]:
    """Names of segments that operations removed or added."""
    return {name for act in acts for key in ("segments_from", "segments_to") for name in texts(act.detail.get(key))}


def _kept_lineage(half: HalfSnapshot, pointer: LineagePointer) -> Iterator[tuple[int, Act]]:
    """Archived lineage entries, newest first, from the entry that `pointer` names."""
    archived = [entry for entry in kept_acts(half.path, half.table_id) if "previous" in entry[1].detail]
    return dropwhile(lambda entry: entry[1].id != pointer.act, archived)


def _own_from(path: Path, first: int, last: int) -> Iterator[tuple[int, HalfState]]:
    """Own commits from `first` on, oldest first. A pointer means the first one: only foreign commits precede it."""
    versions = range(first, last + 1)
    # The oldest entries are deleted first: maybe some before the one in question, maybe that one too.
    there = bisect_left(versions, True, key=lambda version: has_entry(path, version))
    for version in versions[there:]:
        state = state_at(path, version)
        if state is not None:
            yield version, state


def texts(value: object) -> list[str]:
    """The names in a list of an act's detail; empty for any other value."""
    return [str(item) for item in value] if isinstance(value, (list, tuple)) else []


def _log_entry(path: Path, version: int) -> Path:
    return path / _entry(version)


def _entry(version: int) -> str:
    return f"_delta_log/{version:020d}.json"


def _user_metadata(path: Path, version: int) -> str | None:
    try:
        text = _log_entry(path, version).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    for line in text.split("\n"):  # not splitlines(): JSON may hold U+2028 and the like unescaped
        if line.startswith('{"commitInfo"'):
            metadata = json.loads(line)["commitInfo"].get("userMetadata")
            return metadata if isinstance(metadata, str) else None
    return None


def _rows_of(table: DeltaTable) -> list[dict[str, object]]:
    batch = table.get_add_actions(flatten=True)
    columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
    names = list(columns)
    return [dict(zip(names, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _added_file(root: Path, add: Mapping[str, Any]) -> DataFile:
    statistics = json.loads(add.get("stats") or "{}")
    return DataFile(
        path=_absolute(root, str(add["path"])),
        segment=str(add["partitionValues"].get(SEGMENT)),
        rows=int(statistics.get("numRecords", 0)),
        bytes=int(add.get("size", 0)),
        modified_ms=int(add.get("modificationTime", 0)),
        low=statistics.get("minValues", {}),
        high=statistics.get("maxValues", {}),
    )


def _absolute(root: Path, written: str) -> str:
    path = unquote(written)
    return path if path.startswith("/") else str(root / path)


def _data_file(root: Path, row: Mapping[str, object]) -> DataFile:
    def integer(value: object) -> int:
        return int(value) if isinstance(value, (int, float)) else 0

    modified = row["modification_time"]
    return DataFile(
        path=_absolute(root, str(row["path"])),
        segment=str(row[f"partition.{SEGMENT}"]),
        rows=integer(row["num_records"]),
        bytes=integer(row["size_bytes"]),
        modified_ms=integer(modified) if not hasattr(modified, "timestamp") else int(modified.timestamp() * 1000),
        low={name[4:]: value for name, value in row.items() if name.startswith("min.")},
        high={name[4:]: value for name, value in row.items() if name.startswith("max.")},
    )
