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
from hybrid.lake.log import DataFile, HalfSnapshot, open_half
from hybrid.lake.table_context import TableContext
from hybrid.progress import counted
from hybrid.table import columns

# A file below this size is small; a segment is rewritten from this number of small files on.
SMALL_BYTES, FILES_MIN = 32 << 20, 4
# What is rewritten while the lock is held once: seconds of work. Ingestion waits, and the tail shows its rows
# meanwhile.
HOLD_BYTES, _HOLD_SEGMENTS = 128 << 20, 50
# The pause between two holds of the lock; processes that wait for it poll more often than this.
_PAUSE_S = 0.3
# What one run rewrites; the rest is left to the next run.
RUN_BYTES = 4 << 30


@dataclass(frozen=True)
class Heap:
    """Small files of a segment that become `files_after`, usually one; all are smaller than `below` bytes."""

    segment: str
    files: tuple[str, ...]
    bytes: int
    files_after: int
    below: int


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


def run_optimize(table: TableContext, *, dry_run: bool = False, run_id: str = "") -> OptimizeReport:
    """Rewrite small files of sealed segments, in one commit per hold of the lock; `run_id` is recorded in the commits.

    Raises SpecError when the table has no REALTIME half. Raises ConflictError when it is busy for longer than the
    lock's timeout; earlier commits stay.
    """
    if Half.REALTIME not in table.spec.halves:
        raise SpecError(
            f"Table '{table.name}' has no REALTIME half: moves and replacements write few files themselves."
        )
    all_heaps = heaps(table.spec, table.half(Half.REALTIME))
    now, remaining = _within(all_heaps, RUN_BYTES)
    if dry_run or not now:
        return _report(table.spec, now, sum(heap.files_after for heap in now), len(remaining), (), dry_run)
    done: list[Heap] = []
    after, versions = 0, list[int]()
    for number, group in enumerate(_holds(now)):
        if number:
            time.sleep(_PAUSE_S)
        table.bench.progress.step(f"Writing segments of '{table.name}' anew", len(done), len(now))
        with table.lock(Half.REALTIME):
            before = table.half(Half.REALTIME)
            there = heaps(table.spec, before)
            same = [heap for heap in group if heap in there]  # the others were dropped, moved or rewritten meanwhile
            if not same:
                continue
            names = [heap.segment for heap in same]
            note = json.dumps({"task": OPTIMIZE_TASK, "run": run_id})  # no state: see `hybrid.table.state`
            rewrite_files(table.bench.spark, before.path, names, below=same[0].below, up_to=HOLD_BYTES, note=note)
            now_there = open_half(before.path)
        earlier_paths = {file.path for file in before.files}
        after += sum(file.segment in names and file.path not in earlier_paths for file in now_there.files)
        versions += range(before.version + 1, now_there.version + 1)
        done += same
    return _report(table.spec, done, after, len(remaining), tuple(versions), dry_run)


def heaps(spec: TableSpec, realtime: HalfSnapshot) -> list[Heap]:
    """The sealed segments with several small files, by name; of each as much as one hold of the lock can rewrite."""
    excluded = {*realtime.realtime.consuming_names(), *columns.bookkeeping(spec.name)}
    small: dict[str, list[DataFile]] = defaultdict(list)
    for file in realtime.files:
        if file.segment not in excluded and file.bytes < SMALL_BYTES:
            small[file.segment].append(file)
    all_heaps = [_heap(name, files) for name, files in sorted(small.items())]
    return [heap for heap in all_heaps if len(heap.files) >= FILES_MIN]


def _heap(segment: str, files: Iterable[DataFile]) -> Heap:
    """The smallest files of a segment, as much as one hold can rewrite; more when many files have the same size."""
    ordered = sorted(files, key=lambda file: file.bytes)
    below = next((file.bytes for file, size in _summed(ordered) if size > HOLD_BYTES), SMALL_BYTES)
    if sum(file.bytes < below for file in ordered) < FILES_MIN:
        below += below < SMALL_BYTES
    packed = [group for group in _packed([file for file in ordered if file.bytes < below]) if len(group) > 1]
    taken = [file for group in packed for file in group]
    return Heap(segment, tuple(file.path for file in taken), sum(file.bytes for file in taken), len(packed), below)


def _summed(files: Iterable[DataFile]) -> Iterator[tuple[DataFile, int]]:
    """Each file with the total bytes up to and including it."""
    size = 0
    for file in files:
        size += file.bytes
        yield file, size


def _packed(files: Iterable[DataFile]) -> list[list[DataFile]]:
    """The files grouped as Delta would combine them; a file alone in its group is not rewritten."""
    packed: list[list[DataFile]] = []
    for file in files:
        if packed and sum(packed_file.bytes for packed_file in packed[-1]) + file.bytes <= HOLD_BYTES:
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


def _holds(found: Sequence[Heap]) -> list[list[Heap]]:
    """The segments to rewrite under each hold of the lock: few bytes, and one `below` for all."""
    groups: list[list[Heap]] = []
    for heap in found:
        last = groups[-1] if groups else []
        fits = last and last[0].below == heap.below and len(last) < _HOLD_SEGMENTS
        if fits and sum(other.bytes for other in last) + heap.bytes <= HOLD_BYTES:
            last.append(heap)
        else:
            groups.append([heap])
    return groups


def _report(
    spec: TableSpec, done: Sequence[Heap], after: int, left: int, versions: tuple[int, ...], dry_run: bool
) -> OptimizeReport:
    files, size = sum(len(heap.files) for heap in done), sum(heap.bytes for heap in done)
    more = f" {counted(left, 'segment')} more {'waits' if left == 1 else 'wait'} for the next run." if left else ""
    if done:
        what = f"{counted(files, 'small file')} ({counted(size, 'byte')}) of {counted(len(done), 'segment')}"
        verb, end = ("Would write", "would be") if dry_run else ("Wrote", "are")
        sentence = f"{verb} {what} of '{spec.name}' anew: they {end} {counted(after, 'file')}.{more}"
    else:
        least = f"{FILES_MIN} files below {SMALL_BYTES >> 20} MB"
        sentence = f"Nothing to optimize in '{spec.name}': no sealed segment of REALTIME has {least}.{more}"
    return OptimizeReport(tuple(heap.segment for heap in done), files, after, size, left, versions, sentence, dry_run)
