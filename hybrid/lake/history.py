"""What a half was: which version stood at a moment, and which commits brought some offsets.

The time of a commit is the one in its commitInfo, which Spark and delta-rs write alike, in own and foreign commits; a
foreign one may lack it, and then its log entry's file tells. As the clock may have jumped back, a version counts as
committed at the latest time up to its own: so the version of a moment does not change by what comes later.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from hybrid.lake.log import DataFile, HalfSnapshot, own_states, read_commit
from hybrid.table.boundary import Offsets
from hybrid.table.columns import bookkeeping
from hybrid.table.state import RealtimeState

_ENTRY = re.compile(r"(\d{20})\.json")
_TIME = re.compile(rb'\{"commitInfo":\{"timestamp":(\d+)')
# Clocks of two machines differ by less.
_AHEAD_MS = 3_600_000
_HEAD_BYTES = 64  # Spark and delta-rs write the time first


@dataclass(frozen=True)
class VersionThen:
    """The version at a moment; None before the log's first entry, which is `first` and was committed at `first_ms`.

    `ahead`: the clock of the next version was ahead by more than an hour, for later ones have a time up to the moment.
    """

    version: int | None
    first: int
    first_ms: int
    ahead: int | None = None


def version_then(path: Path, newest: int, time_ms: int) -> VersionThen:
    """The newest version, up to `newest`, of which no commit came after `time_ms`. Reads the head of each entry."""
    log = path / "_delta_log"
    names = sorted(name for name in os.listdir(log) if _ENTRY.fullmatch(name))
    found, first, first_ms = None, newest, 0
    for place, name in enumerate(names):
        version, committed_ms = int(name[:20]), _committed_ms(log / name)
        if place == 0:
            first, first_ms = version, committed_ms
        if committed_ms > time_ms or version > newest:
            later = (_committed_ms(log / one) for one in names[place + 1 :])
            is_ahead = committed_ms - time_ms > _AHEAD_MS and any(one <= time_ms for one in later)
            return VersionThen(found, first, first_ms, version if is_ahead else None)
        found = version
    return VersionThen(found, first, first_ms)


def committed_ms(path: Path, version: int) -> int | None:
    """When a version was committed, by the clock of who did; None when the log does not hold its entry any more."""
    try:
        return _committed_ms(path / "_delta_log" / f"{version:020d}.json")
    except FileNotFoundError:
        return None


@dataclass(frozen=True)
class BroughtRows:
    """What commits after a REALTIME version brought of some offsets.

    `files` hold these rows and maybe later ones; `newest` is the last version that was looked at, and `state` its
    state; `left` are the positions that no commit has reached yet. `whole` is False when the log has been cleaned
    between.
    """

    files: tuple[DataFile, ...]
    newest: int
    state: RealtimeState
    left: Offsets
    whole: bool = True


def brought_after(realtime: HalfSnapshot, ends: Offsets, newest: int, table: str) -> BroughtRows:
    """The files of the commits above a version that brought offsets below `ends`, as far as they reach.

    A commit brings what lies between its own offsets and those before it, so one that lays rows anew (a purge, another
    tool's OPTIMIZE) is not among them, and no row comes twice.
    """
    state, files, version = realtime.realtime, list[DataFile](), realtime.version
    left = _beyond(ends, state.offsets)
    while left and version < newest:
        commit = read_commit(realtime.path, version + 1)
        if commit is None:
            return BroughtRows(tuple(files), version, state, left, whole=False)
        version += 1
        if not isinstance(commit.state, RealtimeState):
            continue
        before, state = state, commit.state
        if any(state.offsets.get(key, 0) > before.offsets.get(key, 0) for key in left):
            files += [file for file in commit.added if file.segment not in bookkeeping(table)]
        left = _beyond(left, state.offsets)
    return BroughtRows(tuple(files), version, state, left)


def relied_on(realtime: HalfSnapshot) -> int | None:
    """The OFFLINE version that answers for what retention last dropped up to a REALTIME version; None without one."""
    for _, state in own_states(realtime.path, realtime.version):
        if state.act.kind == "retention":
            found = state.act.detail.get("offline_version")
            return found if isinstance(found, int) else None
    return None


def _beyond(ends: Offsets, reached: Offsets) -> Offsets:
    return {key: end for key, end in ends.items() if end > reached.get(key, 0)}


def _committed_ms(entry: Path) -> int:
    with entry.open("rb") as opened:
        found = _TIME.match(opened.read(_HEAD_BYTES))
    if found is not None:
        return int(found[1])
    for line in entry.read_text(encoding="utf-8").split("\n"):
        told = (json.loads(line).get("commitInfo") or {}).get("timestamp") if '"commitInfo"' in line else None
        if isinstance(told, int):
            return told
    return int(entry.stat().st_mtime * 1000)
