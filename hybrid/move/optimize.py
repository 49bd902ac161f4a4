"""Optimize: many small files of a sealed realtime segment become few. Reasons: docs/adr/0017.

Each ingestion commit adds a file to its segment. As in Delta's OPTIMIZE, one commit rewrites the rows of a segment. It
is marked as changing no data, and carries no state of the half. Readers skip it as they skip another tool's.

The sequence, and what a crash in between leaves (the next run does the rest):
  look at the newest version, no JVM               nothing done; usually there is nothing, and Spark is not started
  take the REALTIME lock; OPTIMIZE some segments   files that no version holds, which vacuum removes; or done
  release the lock, take it for the next ones      the earlier ones are done
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hybrid.config.table_config import Half, TableSpec
from hybrid.config.task_schedules import OPTIMIZE_TASK
from hybrid.errors import SpecError
from hybrid.lake.commit import rewrite_files
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.lake.log_entries import DataFile
from hybrid.lake.table_context import TableContext
from hybrid.progress import counted
from hybrid.runtime.sentence_repr import shown_as_sentence
from hybrid.table import columns


@dataclass(frozen=True)
class OptimizeTuning:
    """Which files are small, and how much is rewritten at once.

    A file below `small_bytes` is small; a segment is rewritten from `files_min` small files on. `hold_bytes` of at most
    `hold_segments` are rewritten while the lock is held once: seconds of work, in which ingestion waits and the tail
    shows its rows. `pause_s` lies between two holds; processes that wait for the lock poll more often. One run rewrites
    `run_bytes` and leaves the rest to the next.
    """

    small_bytes: int = 32 << 20
    files_min: int = 4
    hold_bytes: int = 128 << 20
    hold_segments: int = 50
    pause_s: float = 0.3
    run_bytes: int = 4 << 30


DEFAULT_TUNING = OptimizeTuning()


@dataclass(frozen=True)
class Heap:
    """Small files of a segment that become `files_after`, usually one; all are smaller than `below` bytes."""

    segment: str
    files: tuple[str, ...]
    bytes: int
    files_after: int
    below: int


@shown_as_sentence
@dataclass(frozen=True)
class OptimizeReport:
    """Segments of REALTIME whose small `files` of so many `bytes` were rewritten as `files_after`.

    `left` segments remain for the next run. `versions` are those of the commits; none in a dry run.
    """

    segments: tuple[str, ...]
    files: int
    files_after: int
    bytes: int
    left: int
    versions: tuple[int, ...]
    sentence: str
    dry_run: bool = False

    @property
    def did_something(self) -> bool:
        """Whether something was committed."""
        return bool(self.versions)


def run_optimize(
    table: TableContext, *, dry_run: bool = False, run_id: str = "", tuning: OptimizeTuning = DEFAULT_TUNING
) -> OptimizeReport:
    """Rewrite small files of sealed segments, in one commit per hold of the lock; `run_id` is recorded in the commits.

    Raises SpecError when the table has no REALTIME half. Raises ConflictError when it is busy for longer than the
    lock's timeout; earlier commits stay.
    """
    if Half.REALTIME not in table.spec.halves:
        raise SpecError(
            f"Table '{table.name}' has no REALTIME half: moves and replacements write few files themselves."
        )
    all_heaps = heaps(table.spec, table.half(Half.REALTIME), tuning)
    now, remaining = _within(all_heaps, tuning.run_bytes)
    if dry_run or not now:
        after = sum(heap.files_after for heap in now)
        return _report(table.spec, now, after, len(remaining), (), tuning, dry_run)
    done: list[Heap] = []
    after, versions, seen = 0, list[int](), 0
    label = f"rewriting segments of '{table.name}'"
    for number, group in enumerate(_holds(now, tuning)):
        if number:
            time.sleep(tuning.pause_s)
        table.bench.progress.step(label, seen, len(now))
        seen += len(group)
        with table.lock(Half.REALTIME):
            before = table.half(Half.REALTIME)
            there = heaps(table.spec, before, tuning)
            same = [heap for heap in group if heap in there]  # the others were dropped, moved or rewritten meanwhile
            if not same:
                continue
            names = [heap.segment for heap in same]
            note = json.dumps({"task": OPTIMIZE_TASK, "run": run_id})  # no state: see `hybrid.table.state`
            below, up_to = same[0].below, tuning.hold_bytes
            rewrite_files(table.bench.spark, before.path, names, below=below, up_to=up_to, note=note)
            now_there = open_half(before.path)
        earlier_paths = {file.path for file in before.files}
        after += sum(file.segment in names and file.path not in earlier_paths for file in now_there.files)
        versions += range(before.version + 1, now_there.version + 1)
        done += same
    table.bench.progress.step(label, seen, len(now))
    return _report(table.spec, done, after, len(remaining), tuple(versions), tuning, dry_run)


def heaps(spec: TableSpec, realtime: HalfSnapshot, tuning: OptimizeTuning = DEFAULT_TUNING) -> list[Heap]:
    """The sealed segments with several small files, by name; of each as much as one hold of the lock can rewrite."""
    excluded = {*realtime.realtime.consuming_names(), *columns.bookkeeping(spec.name)}
    small: dict[str, list[DataFile]] = defaultdict(list)
    for file in realtime.files:
        if file.segment not in excluded and file.bytes < tuning.small_bytes:
            small[file.segment].append(file)
    all_heaps = [_heap(name, files, tuning) for name, files in sorted(small.items())]
    return [heap for heap in all_heaps if len(heap.files) >= tuning.files_min]


def _heap(segment: str, files: Iterable[DataFile], tuning: OptimizeTuning) -> Heap:
    """The smallest files of a segment, as much as one hold can rewrite; more when many files have the same size."""
    ordered = sorted(files, key=lambda file: file.bytes)
    below = next((file.bytes for file, size in _summed(ordered) if size > tuning.hold_bytes), tuning.small_bytes)
    if sum(file.bytes < below for file in ordered) < tuning.files_min:
        below += below < tuning.small_bytes
    packed = [
        group
        for group in _packed([file for file in ordered if file.bytes < below], tuning.hold_bytes)
        if len(group) > 1
    ]
    taken = [file for group in packed for file in group]
    return Heap(segment, tuple(file.path for file in taken), sum(file.bytes for file in taken), len(packed), below)


def _summed(files: Iterable[DataFile]) -> Iterator[tuple[DataFile, int]]:
    """Each file with the total bytes up to and including it."""
    size = 0
    for file in files:
        size += file.bytes
        yield file, size


def _packed(files: Iterable[DataFile], bytes_max: int) -> list[list[DataFile]]:
    """The files grouped as Delta would combine them; a file alone in its group is not rewritten."""
    packed: list[list[DataFile]] = []
    for file in files:
        if packed and sum(packed_file.bytes for packed_file in packed[-1]) + file.bytes <= bytes_max:
            packed[-1].append(file)
        else:
            packed.append([file])
    return packed


def _within(found: Sequence[Heap], bytes_max: int) -> tuple[list[Heap], list[Heap]]:
    """The part that one run takes, and the rest."""
    size = 0
    for place, heap in enumerate(found):
        size += heap.bytes
        if place and size > bytes_max:
            return list(found[:place]), list(found[place:])
    return list(found), []


def _holds(found: Sequence[Heap], tuning: OptimizeTuning) -> list[list[Heap]]:
    """The segments to rewrite under each hold of the lock: few bytes, and one `below` for all."""
    groups: list[list[Heap]] = []
    for heap in found:
        last = groups[-1] if groups else []
        fits = last and last[0].below == heap.below and len(last) < tuning.hold_segments
        if fits and sum(other.bytes for other in last) + heap.bytes <= tuning.hold_bytes:
            last.append(heap)
        else:
            groups.append([heap])
    return groups


def _report(
    spec: TableSpec,
    done: Sequence[Heap],
    after: int,
    left: int,
    versions: tuple[int, ...],
    tuning: OptimizeTuning,
    dry_run: bool,
) -> OptimizeReport:
    files, size = sum(len(heap.files) for heap in done), sum(heap.bytes for heap in done)
    more = f" {counted(left, 'segment')} more {'waits' if left == 1 else 'wait'} for the next run." if left else ""
    if done:
        what = f"{counted(files, 'small file')} ({counted(size, 'byte')}) of {counted(len(done), 'segment')}"
        verb, end = ("Would write", "would be") if dry_run else ("Wrote", "are")
        sentence = f"{verb} {what} of '{spec.name}' anew: they {end} {counted(after, 'file')}.{more}"
    else:
        least = f"{tuning.files_min} files below {tuning.small_bytes >> 20} MB"
        sentence = f"Nothing to optimize in '{spec.name}': no sealed segment of REALTIME has {least}.{more}"
    return OptimizeReport(tuple(heap.segment for heap in done), files, after, size, left, versions, sentence, dry_run)
