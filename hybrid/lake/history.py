"""History of a half: the version at a moment, and the commits that ingested given offsets.

The time of a commit is the timestamp in its commitInfo, which Spark and delta-rs write alike, in own and foreign
commits. For a foreign commit without one, the log entry's file time is used. The clock may have jumped back, so a
version counts as committed at the latest time up to its own. Later commits therefore never change the version of a
moment.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from hybrid.lake.log import HalfSnapshot
from hybrid.lake.log_entries import DataFile, own_states, read_commit
from hybrid.table.boundary import Offsets
from hybrid.table.columns import bookkeeping
from hybrid.table.state import RealtimeState

_ENTRY = re.compile(r"(\d{20})\.json")
_TIME = re.compile(rb'\{"commitInfo":\{"timestamp":(\d+)')
# Clocks of two machines differ by less than this.
_AHEAD_MS = 3_600_000
_HEAD_BYTES = 64  # Spark and delta-rs write the time first


@dataclass(frozen=True)
class VersionThen:
    """The version at a moment; None before the log's first entry, which is `first` and was committed at `first_ms`.

    `ahead` is the next version when its clock was ahead by more than an hour: later versions have a time up to the
    moment.
    """

    version: int | None
    first: int
    first_ms: int
    ahead: int | None = None


def version_then(path: Path, newest: int, time_ms: int) -> VersionThen:
    """The newest version, up to `newest`, that was committed by `time_ms` like all before it.

    Reads the head of each entry.
    """
    log = path / "_delta_log"
    names = sorted(name for name in os.listdir(log) if _ENTRY.fullmatch(name))
    version_found, first, first_ms = None, newest, 0
    for place, name in enumerate(names):
        version, committed_ms = int(name[:20]), _committed_ms(log / name)
        if place == 0:
            first, first_ms = version, committed_ms
        if committed_ms > time_ms or version > newest:
            later = (_committed_ms(log / later_name) for later_name in names[place + 1 :])
            is_ahead = committed_ms - time_ms > _AHEAD_MS and any(later_name <= time_ms for later_name in later)
            return VersionThen(version_found, first, first_ms, version if is_ahead else None)
        version_found = version
    return VersionThen(version_found, first, first_ms)


def committed_ms(path: Path, version: int) -> int | None:
    """When a version was committed, by its writer's clock; None when the log no longer holds its entry."""
    try:
        return _committed_ms(path / "_delta_log" / f"{version:020d}.json")
    except FileNotFoundError:
        return None


@dataclass(frozen=True)
class BroughtRows:
    """The rows of some offsets that commits after a REALTIME version ingested.

    `files` hold these rows and maybe later ones. `newest` is the last version read, and `state` its state. `left` are
    the end offsets that no commit has reached yet. `whole` is False when the log was cleaned in between.
    """

    files: tuple[DataFile, ...]
    newest: int
    state: RealtimeState
    left: Offsets
    whole: bool = True


def brought_after(realtime: HalfSnapshot, ends: Offsets, newest: int, table: str) -> BroughtRows:
    """The files of the commits above a version that ingested offsets below `ends`, as far as the commits reach.

    A commit ingests the offsets between the previous state and its own. So a commit that rewrites rows (a purge,
    another tool's OPTIMIZE) is not among them, and no row appears twice.
    """
    state, files, version = realtime.realtime, list[DataFile](), realtime.version
    remaining = _beyond(ends, state.offsets)
    while remaining and version < newest:
        commit = read_commit(realtime.path, version + 1)
        if commit is None:
            return BroughtRows(tuple(files), version, state, remaining, whole=False)
        version += 1
        if not isinstance(commit.state, RealtimeState):
            continue
        before, state = state, commit.state
        if any(state.offsets.get(key, 0) > before.offsets.get(key, 0) for key in remaining):
            files += [file for file in commit.added if file.segment not in bookkeeping(table)]
        remaining = _beyond(remaining, state.offsets)
    return BroughtRows(tuple(files), version, state, remaining)


def relied_on(realtime: HalfSnapshot) -> int | None:
    """The OFFLINE version that holds what the last retention up to a REALTIME version dropped; None without one."""
    for _, state in own_states(realtime.path, realtime.version):
        if state.act.kind == "retention":
            offline_version = state.act.detail.get("offline_version")
            return offline_version if isinstance(offline_version, int) else None
    return None


def _beyond(ends: Offsets, reached: Offsets) -> Offsets:
    return {key: end for key, end in ends.items() if end > reached.get(key, 0)}


def _committed_ms(entry: Path) -> int:
    with entry.open("rb") as opened:
        match = _TIME.match(opened.read(_HEAD_BYTES))
    if match is not None:
        return int(match[1])
    for line in entry.read_text(encoding="utf-8").split("\n"):
        timestamp = (json.loads(line).get("commitInfo") or {}).get("timestamp") if '"commitInfo"' in line else None
        if isinstance(timestamp, int):
            return timestamp
    return int(entry.stat().st_mtime * 1000)
