"""Reads a half from its Delta log, without a JVM: version, state of the newest own commit, files with statistics."""

from __future__ import annotations

import json
import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import dropwhile
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from hybrid.errors import DataError, NotFoundError
from hybrid.lake.half_head import HalfHead, followed_head, forget_head, keep_head
from hybrid.lake.lineage_archive import kept_acts
from hybrid.lake.log_entries import (
    Commit,
    DataFile,
    absolute_path,
    has_entry,
    last_time,
    own_states,
    read_commit,
    state_at,
)
from hybrid.lake.log_sync import set_torn_aside
from hybrid.runtime.sentence_repr import shown_as
from hybrid.table.columns import SEGMENT
from hybrid.table.effective import EffectiveBoundary, effective_boundary
from hybrid.table.state import Act, HalfState, LineagePointer, OfflineState, RealtimeState

# The properties that list the columns that rows may lack, and the columns that files may hold in a narrower type.
ADDED, WIDENED = "hybrid.added", "hybrid.widened"


def listed_columns(properties: Mapping[str, str], which: str) -> list[str]:
    """The columns that one of a half's properties lists."""
    return list(json.loads(properties.get(which, "[]")))


@shown_as("{0.path} at version {0.version}")
class HalfSnapshot:
    """A half at one version of its log. Its files outlive every query that reads them (vacuum waits for days)."""

    def __init__(self, path: Path, head: HalfHead, table: DeltaTable | None = None) -> None:
        self.path = path
        self.head = head
        if table is not None:
            vars(self)["table"] = table

    @property
    def version(self) -> int:
        """The version of the half."""
        return self.head.version

    @cached_property
    def table(self) -> DeltaTable:
        """The Delta table at this version. Reading it takes longer the more files it has, so it is read when needed.

        DataError when the log no longer holds the version, or is that of a table that was created again meanwhile.
        """
        table = _read_table(self.path, self.version)
        if str(table.metadata().id) != self.table_id:
            raise DataError(f"{self.path}: the table was created again meanwhile.", hint="Run it again.")
        return table

    @property
    def table_id(self) -> str:
        """The id of this Delta table. A table that was dropped and created again at the same path has another id."""
        return str(self.head.metadata.id)

    @cached_property
    def properties(self) -> Mapping[str, str]:
        """The properties of the Delta table."""
        return {name: str(value) for name, value in self.head.metadata.configuration.items()}

    @cached_property
    def features(self) -> frozenset[str]:
        """The Delta features that the table's protocol names."""
        protocol = self.head.protocol
        return frozenset([*(protocol.reader_features or []), *(protocol.writer_features or [])])

    @cached_property
    def has_deletion_vectors(self) -> bool:
        """Whether rows of some file are marked as deleted, beside the file."""
        return "deletionVectors" in self.features and any(batch.num_rows for batch in self.table.deletion_vectors())

    @property
    def has_mapped_columns(self) -> bool:
        """Whether columns have other names in the files."""
        return self.properties.get("delta.columnMapping.mode", "none") != "none"

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

    @property
    def columns(self) -> str:
        """The stored columns with types and order as one text, for comparing schemas."""
        return self.head.columns

    @cached_property
    def state(self) -> HalfState:
        """The state in the newest own commit at or before this version; foreign commits are skipped."""
        for _, state in own_states(self.path, self.version):
            return state
        raise DataError(f"{self.path}: no commit of hybrid's up to version {self.version}: not one of our tables.")

    @cached_property
    def files(self) -> tuple[DataFile, ...]:
        """The data files of this version, rejected rows' included, by segment and path."""
        return tuple(sorted(_data_files(self.path, self.table), key=lambda file: (file.segment, file.path)))

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
        return self._holding(files, self.version)

    def _holding(self, files: Iterable[DataFile], version: int) -> HalfSnapshot:
        snapshot = HalfSnapshot(self.path, replace(self.head, version=version))
        vars(snapshot)["files"] = tuple(sorted(files, key=lambda file: (file.segment, file.path)))
        return snapshot

    def after(self, commits: Sequence[Commit]) -> HalfSnapshot:
        """The half after the own commits that follow this version, in their order, without opening its log again.

        They must be plain. Statistics of files that they added have the types of JSON.
        """
        files = {file.path: file for file in self.files}
        for commit in commits:
            for path in commit.removed:
                files.pop(path, None)
            files.update((file.path, file) for file in commit.added)
        newest = commits[-1]
        snapshot = self._holding(files.values(), newest.version)
        vars(snapshot)["state"] = newest.state
        return snapshot

    def effective_boundary(self, lag_ms: int) -> EffectiveBoundary:
        """The boundary in effect at this version of an OFFLINE half; `lag_ms` is mode pinot's lag."""
        return effective_boundary(self.offline.boundary, self.last_ms, lag_ms)


def follow_half(snapshot: HalfSnapshot, commits_max: int) -> HalfSnapshot | None:
    """The newest version of a half, made of an older snapshot and of the few own commits since then.

    None where its log has to be opened: its files are not listed yet, too many commits, or a foreign one. The caller
    makes sure that the table at this path is the snapshot's.
    """
    if "files" not in vars(snapshot):  # the log may no longer hold the older version
        return None
    commits = list[Commit]()
    while (commit := read_commit(snapshot.path, snapshot.version + len(commits) + 1)) is not None:
        if commit.state is None or not commit.is_plain or len(commits) == commits_max:
            return None
        commits.append(commit)
    return snapshot.after(commits) if commits else None


# Halves whose log this process has checked for torn files. A power failure ends the process, so once is enough.
_LOOKED_AT: set[Path] = set()


def open_half(path: Path, version: int | None = None) -> HalfSnapshot:
    """The half at `path`, at its newest version unless `version` is given.

    NotFoundError without a Delta table; DataError when its log cannot be read or no longer holds that version. The
    first call of a process sets aside what a power failure left of an unacknowledged commit. A later one reads only the
    entries since the call before it: see `HalfHead`.
    """
    if path not in _LOOKED_AT and path.is_dir():
        set_torn_aside(path)
        _LOOKED_AT.add(path)
    if version is not None:
        return _read_half(path, version)
    head = followed_head(path)
    return _read_newest(path) if head is None else HalfSnapshot(path, head)


def _read_half(path: Path, version: int | None) -> HalfSnapshot:
    table = _read_table(path, version)
    head = HalfHead(table.version(), table.metadata(), table.protocol(), table.schema().to_json())
    return HalfSnapshot(path, head, table)


def _read_newest(path: Path) -> HalfSnapshot:
    forget_head(path)
    try:
        folder = os.open(path / "_delta_log", os.O_RDONLY)
    except OSError:
        return _read_half(path, None)  # which says what is wrong
    try:
        snapshot = _read_half(path, None)
        keep_head(path, snapshot.head, folder)
        return snapshot
    finally:
        os.close(folder)


def _read_table(path: Path, version: int | None) -> DeltaTable:
    try:
        return DeltaTable(str(path), version=version)
    except TableNotFoundError as error:
        if version is not None and any((path / "_delta_log").glob("[0-9]*.json")):
            raise DataError(f"{path}: the Delta log does not hold version {version} any more.") from error
        raise NotFoundError(f"There is no Delta table at {path}.") from error
    except DeltaError as error:
        raise DataError(f"{path}: the Delta log cannot be read at version {version or 'newest'}: {error}") from error


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


def _data_files(root: Path, table: DeltaTable) -> list[DataFile]:
    """The data files of a table, taken column by column, because a table may have 100,000 of them."""
    batch = table.get_add_actions(flatten=True)
    if not batch.num_rows:  # then columns of statistics may be missing
        return []
    columns: dict[str, list[Any]] = {name: list(batch.column(name).to_pylist()) for name in batch.schema.names}
    segments, paths, modified = columns[f"partition.{SEGMENT}"], columns["path"], columns["modification_time"]
    lows, highs = (_statistics(columns, prefix, len(paths)) for prefix in ("min.", "max."))
    return [
        DataFile(
            path=absolute_path(root, str(path)),
            segment=str(segment),
            rows=_integer(rows),
            bytes=_integer(size),
            modified_ms=_integer(at) if not hasattr(at, "timestamp") else int(at.timestamp() * 1000),
            low=low,
            high=high,
        )
        for path, segment, rows, size, at, low, high in zip(
            paths, segments, columns["num_records"], columns["size_bytes"], modified, lows, highs, strict=True
        )
    ]


def _statistics(columns: Mapping[str, list[Any]], prefix: str, count: int) -> list[dict[str, object]]:
    """One side's statistics of each file, by column."""
    names = [name for name in columns if name.startswith(prefix)]
    if not names:
        return [{} for _ in range(count)]
    short = [name[len(prefix) :] for name in names]
    return [dict(zip(short, row, strict=True)) for row in zip(*(columns[name] for name in names), strict=True)]


def _integer(value: object) -> int:
    return int(value) if isinstance(value, (int, float)) else 0
