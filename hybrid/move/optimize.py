"""Optimize: many small files of a sealed realtime segment become few. Reasons: docs/adr/0017, docs/adr/0060.

Each ingestion commit adds a file to its segment. As in Delta's OPTIMIZE, one commit rewrites the rows of some segments.
It is marked as changing no data, and carries no state of the half. Readers skip it as they skip another tool's.

The sequence, and what a crash in between leaves (the next run does the rest):
  look at the newest version, no JVM               nothing done; usually there is nothing, and Spark is not started
  take the REALTIME lock; rewrite some segments    files that no version holds, which vacuum removes; or done
  release the lock, take it for the next ones      the earlier ones are done
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from hybrid.config.table_config import Half, TableSpec
from hybrid.config.task_schedules import OPTIMIZE_TASK
from hybrid.errors import DataError, SpecError
from hybrid.lake.commit import FileAct, commit_rewritten
from hybrid.lake.commit_context import new_act_id
from hybrid.lake.files import RowsFile, path_in_half
from hybrid.lake.layout import physical_columns, spark_columns, statistics_columns
from hybrid.lake.log import HalfSnapshot
from hybrid.lake.log_entries import DataFile
from hybrid.lake.table_context import TableContext
from hybrid.lake.transaction import LogTransaction, other_columns
from hybrid.lake.workers import run_numbered
from hybrid.move.direct import batch_rows
from hybrid.move.file_reader import FileRows, TaskLimits, identifier, worker_database
from hybrid.move.write import as_schema, written_columns, written_schema
from hybrid.progress import counted
from hybrid.runtime import durable
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
    """Small files of a segment that become one file, in the order of their offsets."""

    segment: str
    files: tuple[DataFile, ...]

    @property
    def bytes(self) -> int:
        """The length of all files."""
        return sum(file.bytes for file in self.files)


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
    newest = table.half(Half.REALTIME)
    if obstacle := _obstacle(table.spec, newest):
        return _report(table.spec, [], 0, (), tuning, dry_run, obstacle)
    now, remaining = _within(heaps(table.spec, newest, tuning), tuning.run_bytes)
    if dry_run or not now:
        return _report(table.spec, now, len(remaining), (), tuning, dry_run)
    done: list[Heap] = []
    versions, seen = list[int](), 0
    label = f"rewriting segments of '{table.name}'"
    for number, group in enumerate(_holds(now, tuning)):
        if number:
            time.sleep(tuning.pause_s)
        table.bench.progress.step(label, seen, len(now))
        seen += len(group)
        with table.lock(Half.REALTIME):
            current = table.half(Half.REALTIME)
            there = heaps(table.spec, current, tuning)
            same = [heap for heap in group if heap in there]  # the others were dropped, moved or rewritten meanwhile
            if same:
                note = json.dumps({"task": OPTIMIZE_TASK, "run": run_id})  # no state: see `hybrid.table.state`
                versions.append(rewrite(table, current, same, note))
        done += same
    table.bench.progress.step(label, seen, len(now))
    return _report(table.spec, done, len(remaining), versions, tuning, dry_run)


def _obstacle(spec: TableSpec, realtime: HalfSnapshot) -> str | None:
    """What somebody has done to the half so that its files are not ours to write again."""
    if features := LogTransaction(realtime.path).foreign_features:
        return f"REALTIME has the Delta feature {', '.join(features)}. Use the OPTIMIZE of the tool that turned it on"
    if names := _foreign_columns(spec, realtime):
        return f"REALTIME has columns that the table does not define ({', '.join(names)})"
    return None


def _foreign_columns(spec: TableSpec, realtime: HalfSnapshot) -> list[str]:
    return sorted(set(spark_columns(realtime.columns)) - {name for name, _ in physical_columns(spec, Half.REALTIME)})


def rewrite(table: TableContext, current: HalfSnapshot, chosen: Sequence[Heap], note: str) -> int:
    """Write the files of each heap as one file, in one commit without a state. Returns its version.

    Call it under the half's lock. Raises OvertakenError when a foreign commit removed some of the files, and
    ConflictError when somebody else has changed the half's columns. Nothing was changed then.
    """
    spec, half, spark = table.spec, current.path, table.bench.file_workers
    if _foreign_columns(spec, current):
        raise other_columns(half)
    stored = written_columns(spec, Half.REALTIME)
    token = new_act_id("optimize")
    write_file = _file_writer(half, spec, token, stored, grown=current.grown is not None)
    limits = TaskLimits.of(spark)

    def work(number: int) -> Iterator[str]:
        yield json.dumps(write_file(chosen[number], limits))

    def write() -> list[Mapping[str, object]]:
        return [json.loads(text) for text in run_numbered(spark, len(chosen), work)]

    replacing = {heap.segment: [file.path.removeprefix(f"{half}/") for file in heap.files] for heap in chosen}
    return commit_rewritten(FileAct(half, "optimize", token, stored, replacing), write, note)


def _file_writer(
    half: Path, spec: TableSpec, token: str, stored: Sequence[tuple[str, str]], *, grown: bool
) -> Callable[[Heap, TaskLimits], Mapping[str, object]]:
    """A function for Spark's workers that writes a heap as one file, and returns its log entry. Make it in the driver.

    DataError when the file has not as many rows as the heap's.
    """
    is_durable = durable.is_enabled(half)  # in the driver, because workers have no settings
    statistics, names = statistics_columns(spec, Half.REALTIME), ", ".join(identifier(name) for name, _ in stored)

    def write(heap: Heap, limits: TaskLimits) -> Mapping[str, object]:
        import pyarrow.parquet as pq

        schema = written_schema(spec, Half.REALTIME)
        file = RowsFile(half / path_in_half(heap.segment, ""), token, statistics, is_durable=is_durable)
        rows = FileRows(heap.files, "true", stored, grown)
        with worker_database(limits) as database:
            for batch in database.sql(rows.select(names)).to_arrow_reader(batch_rows(heap.files)):
                file.write(as_schema(batch, schema))
        written, count = file.close(), sum(pq.read_metadata(path.path).num_rows for path in heap.files)
        if written.rows != count:
            raise DataError(f"Of {count} rows of segment '{heap.segment}', {written.rows} were written.")
        return written.entry(heap.segment, data_change=False)

    return write


def heaps(spec: TableSpec, realtime: HalfSnapshot, tuning: OptimizeTuning = DEFAULT_TUNING) -> list[Heap]:
    """The sealed segments with several small files, by name; of each as much as one hold of the lock can rewrite."""
    excluded = {*realtime.realtime.consuming_names(), *columns.bookkeeping(spec.name)}
    small: dict[str, list[DataFile]] = defaultdict(list)
    for file in realtime.files:
        if file.segment not in excluded and file.bytes < tuning.small_bytes:
            small[file.segment].append(file)
    return [
        Heap(name, _smallest(files, tuning.hold_bytes))
        for name, files in sorted(small.items())
        if len(files) >= tuning.files_min
    ]


def _smallest(files: Sequence[DataFile], bytes_max: int) -> tuple[DataFile, ...]:
    """The smallest files that have so many bytes together, at least two, in the order of their offsets."""
    ordered = sorted(files, key=lambda file: file.bytes)
    sizes = accumulate(file.bytes for file in ordered)
    taken = ordered[: max(2, sum(size <= bytes_max for size in sizes))]
    return tuple(sorted(taken, key=lambda file: (file.low.get(columns.OFFSET, 0), file.path)))


def _within(found: Sequence[Heap], bytes_max: int) -> tuple[list[Heap], list[Heap]]:
    """The part that one run takes, and the rest."""
    size = 0
    for place, heap in enumerate(found):
        size += heap.bytes
        if place and size > bytes_max:
            return list(found[:place]), list(found[place:])
    return list(found), []


def _holds(found: Sequence[Heap], tuning: OptimizeTuning) -> list[list[Heap]]:
    """The segments to rewrite under each hold of the lock."""
    groups: list[list[Heap]] = []
    for heap in found:
        last = groups[-1] if groups else []
        fits = last and len(last) < tuning.hold_segments
        if fits and sum(other.bytes for other in last) + heap.bytes <= tuning.hold_bytes:
            last.append(heap)
        else:
            groups.append([heap])
    return groups


def _report(
    spec: TableSpec,
    done: Sequence[Heap],
    left: int,
    versions: Sequence[int],
    tuning: OptimizeTuning,
    dry_run: bool,
    reason: str = "",
) -> OptimizeReport:
    files, size = sum(len(heap.files) for heap in done), sum(heap.bytes for heap in done)
    more = f" {counted(left, 'segment')} more {'waits' if left == 1 else 'wait'} for the next run." if left else ""
    if done:
        what = f"{counted(files, 'small file')} ({counted(size, 'byte')}) of {counted(len(done), 'segment')}"
        verb, end = ("Would write", "would be") if dry_run else ("Wrote", "are")
        sentence = f"{verb} {what} of '{spec.name}' anew: they {end} {counted(len(done), 'file')}.{more}"
    else:
        reason = (
            reason or f"no sealed segment of REALTIME has {tuning.files_min} files below {tuning.small_bytes >> 20} MB"
        )
        sentence = f"Nothing to optimize in '{spec.name}': {reason}.{more}"
    segments = tuple(heap.segment for heap in done)
    return OptimizeReport(segments, files, len(done), size, left, tuple(versions), sentence, dry_run)
