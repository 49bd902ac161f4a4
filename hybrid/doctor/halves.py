"""Checks of a table's halves: log, state and every data file, and that both states agree."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from hybrid.config.table_config import Half, StreamConfig, TableSpec
from hybrid.doctor.findings import Checkup, Severity
from hybrid.errors import HybridError
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.lake.log_entries import DataFile
from hybrid.table import columns
from hybrid.table.boundary import TopicPartition, current_keys
from hybrid.table.names import topic_in_name
from hybrid.table.state import OfflineState, RealtimeState

_ENTRY = re.compile(r"\d{20}\.json")
_BACKUP = "Restore it from a backup, and keep what is there until then."


def check_halves(checkup: Checkup, spec: TableSpec) -> dict[Half, HalfSnapshot]:
    """The halves that can be read. OFFLINE is read first: what it refers to in REALTIME was committed before."""
    layout = checkup.home.context.layout(spec.name)
    snapshots: dict[Half, HalfSnapshot] = {}
    for half in (Half.OFFLINE, Half.REALTIME):
        if half in spec.halves:
            with checkup.surviving("half", spec.name):
                snapshot = _readable(checkup, spec, layout, half)
                if snapshot is not None:
                    snapshots[half] = snapshot
                    _check_files(checkup, spec, half, snapshot.files)
        elif layout.half(half).exists():
            message = f"There is a half {layout.half(half)}, and the definition does not name it."
            hint = "hybrid table apply (with both configs), or remove it"
            checkup.found(Severity.WARNING, "leftover", message, table=spec.name, hint=hint)
    with checkup.surviving("state", spec.name):
        _check_states(checkup, spec, snapshots)
    return snapshots


def _readable(checkup: Checkup, spec: TableSpec, layout: TableLayout, half: Half) -> HalfSnapshot | None:
    path = layout.half(half)
    log_is_intact = _check_log(checkup, spec, half, path)
    try:
        snapshot = open_half(path)
        state, _ = snapshot.state, snapshot.files
    except (HybridError, ValueError, TypeError, KeyError) as error:
        if log_is_intact:
            reason = str(error).partition("\n")[0] if isinstance(error, HybridError) else repr(error)
            message = f"The {half} half cannot be read: {reason}"
            checkup.found(Severity.ERROR, "half", message, table=spec.name, hint=_BACKUP)
        return None
    if isinstance(state, RealtimeState) != (half is Half.REALTIME):
        message = f"The newest commit of hybrid's in {path} is not one of the {half} half."
        checkup.found(Severity.ERROR, "state", message, table=spec.name, hint=_BACKUP)
        return None
    return snapshot


def _check_log(checkup: Checkup, spec: TableSpec, half: Half, path: Path) -> bool:
    """Whether every log entry from the oldest to the newest exists and can be read."""
    entries = sorted(entry for entry in (path / "_delta_log").glob("*.json") if _ENTRY.fullmatch(entry.name))
    gaps = [
        f"{before + 1:020d}.json is missing"
        for before, after in pairwise(int(entry.stem) for entry in entries)
        if after != before + 1
    ]
    bad = [*gaps, *filter(None, map(_damage, entries))]
    if bad:
        more = f" ({len(bad)} damages in all)" if len(bad) > 1 else ""
        message = f"The log of the {half} half is damaged: {path / '_delta_log'}: {bad[0]}{more}."
        checkup.found(Severity.ERROR, "log", message, table=spec.name, hint=_BACKUP)
    return not bad


def _damage(entry: Path) -> str | None:
    """What is wrong with a log entry; None when it is intact."""
    try:
        lines = [json.loads(line) for line in entry.read_text(encoding="utf-8").split("\n") if line]
    except ValueError as error:
        return f"{entry.name} cannot be read ({error})"
    return None if lines else f"{entry.name} is empty"


def _check_files(checkup: Checkup, spec: TableSpec, half: Half, files: Sequence[DataFile]) -> None:
    """Checks that every file of the newest version exists, with its size in the log."""
    missing: list[str] = []
    wrong: list[str] = []
    for number, file in enumerate(files, 1):
        try:
            if Path(file.path).stat().st_size != file.bytes:
                wrong.append(file.path)
        except FileNotFoundError:
            missing.append(file.path)
        checkup.home.context.progress.step(f"{spec.name}: files of {half}", number, len(files))
    for bad, words in ((missing, "not there"), (wrong, "not as long as the log says")):
        if bad:
            message = f"{len(bad)} of {len(files)} data files of the {half} half are {words}, e.g. {bad[0]}."
            hint = "Restore them from a backup. A segment of OFFLINE can be replaced: hybrid job run"
            checkup.found(Severity.ERROR, "data", message, table=spec.name, hint=hint)


def _check_states(checkup: Checkup, spec: TableSpec, halves: dict[Half, HalfSnapshot]) -> None:
    contradictions: list[str] = []
    if Half.REALTIME in halves:
        snapshot = halves[Half.REALTIME]
        contradictions += contradictions_of_realtime(spec, snapshot.realtime, snapshot.files)
        if Half.OFFLINE in halves:
            contradictions += contradictions_of_boundary(halves[Half.OFFLINE].offline, snapshot.realtime)
    for message in contradictions:
        hint = "Stop all operations on this table, and keep its folder: this does not happen by itself."
        checkup.found(Severity.ERROR, "state", message, table=spec.name, hint=hint)


def contradictions_of_boundary(offline: OfflineState, realtime: RealtimeState) -> Iterator[str]:
    """Sentences on partitions whose frontier lies past the committed offset of the REALTIME half."""
    for key, offset in offline.boundary.frontier.items():
        committed = realtime.offsets.get(key, 0)
        if offset > committed:
            yield f"The boundary's frontier of {key} is {offset}, past what was committed, {committed}."


def contradictions_of_realtime(spec: TableSpec, state: RealtimeState, files: Sequence[DataFile]) -> Iterator[str]:
    """Sentences on contradictions within the REALTIME half's state, or between its state and its files."""
    rows = Counter[str]()
    for file in files:
        rows[file.segment] += file.rows
    for key, segment in state.consuming.items():
        committed, sequence = state.offsets.get(key, 0), state.sequences.get(key, 0)
        if segment.start > committed:
            yield f"Consuming segment {segment.name} begins at offset {segment.start}, past the committed {committed}."
        if segment.sequence >= sequence:
            yield f"Consuming segment {segment.name} has a sequence number that is free: the next one is {sequence}."
        if rows[segment.name] != segment.rows:
            stored = rows[segment.name]
            yield f"Consuming segment {segment.name} has {segment.rows} rows by its state and {stored} by its files."
    if spec.stream is not None:
        yield from _uncommitted(spec.stream, state, [file for file in files if _holds_rows(spec, file)])


def _uncommitted(stream: StreamConfig, state: RealtimeState, files: Sequence[DataFile]) -> Iterator[str]:
    """Sentences on rows at offsets that are yet to be read: they would be stored twice."""
    located_files = [(file, _place(stream, file), file.high.get(columns.OFFSET)) for file in files]
    keys = current_keys(stream, {place for _, place, _ in located_files if place is not None}, state.offsets)
    for file, place, offset in located_files:
        if place is not None and isinstance(offset, int):
            key = keys[place]
            if file.low.get(columns.EPOCH, key.epoch) != key.epoch:
                continue  # a replay's, or of an earlier epoch: its offsets are not read again
            committed = state.offsets.get(key, 0)
            if offset >= committed:
                yield f"Segment {file.segment} holds offset {offset} of {key}, and {committed} is the next one to read."


def _place(stream: StreamConfig, file: DataFile) -> TopicPartition | None:
    """The partition of a file's rows. Statistics lack the topic; the segment's name tells several topics apart."""
    partition, topic = file.high.get(columns.PARTITION), topic_in_name(stream, file.segment)
    return TopicPartition(topic, partition) if topic is not None and isinstance(partition, int) else None


def _holds_rows(spec: TableSpec, file: DataFile) -> bool:
    return file.segment not in columns.bookkeeping(spec.name)
