"""The realtime rows that wait for a move, counted over the files of a pinned version."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half, MoveConfig, TableSpec
from hybrid.errors import DataError
from hybrid.lake.layout import physical_columns, spark_columns
from hybrid.lake.log import HalfSnapshot
from hybrid.lake.log_entries import DataFile
from hybrid.lake.waiting_files import waiting_files
from hybrid.lake.workers import parallelism, run_numbered
from hybrid.move.file_reader import FileRows, TaskLimits, bucket_sql, worker_database
from hybrid.move.plan import MovePlan, Slots, WaitingBuckets, until
from hybrid.schema.rounding import rounded_down
from hybrid.table import columns
from hybrid.table.boundary import Boundary
from hybrid.table.coverage_sql import covered_sql, may_wait_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The rows that one task counts: at most this many, unless there are more than the session has cores.
_COUNTED_ROWS = 500_000


def waiting_rows(spec: TableSpec, realtime: HalfSnapshot, before: Boundary) -> FileRows:
    """The valid rows of a REALTIME version that the boundary does not cover.

    DataError when the files alone do not tell the rows.
    """
    _refuse_hidden(spec, realtime)
    committed, bookkeeping = realtime.realtime.offsets, columns.bookkeeping(spec.name)
    files = [file for file in realtime.files if file.segment not in bookkeeping]
    where = f"{may_wait_sql(before, committed)} AND NOT {covered_sql(before)}"
    stored = [column for column in physical_columns(spec, Half.REALTIME) if column[0] != columns.SEGMENT]
    # The definition may be newer than the half: what it added is not in any of these files then.
    grown = realtime.grown is not None or not {name for name, _ in stored} <= spark_columns(realtime.columns).keys()
    return FileRows(waiting_files(files, before, committed), where, stored, grown)


def _refuse_hidden(spec: TableSpec, realtime: HalfSnapshot) -> None:
    """DataError if another tool marked rows of files as deleted, or gave columns other names in them."""
    table = f"delta.`{realtime.path}`"
    if realtime.has_mapped_columns:
        words, remedy = "mapped columns", f"ALTER TABLE {table} DROP FEATURE columnMapping"
    elif realtime.has_deletion_vectors:
        words = "deletion vectors"
        remedy = f"REORG TABLE {table} APPLY (PURGE), then ALTER TABLE {table} DROP FEATURE deletionVectors"
    else:
        return
    raise DataError(
        f"REALTIME of '{spec.name}' has {words}, which another tool turned on. Nothing was moved.",
        hint=f"Run in that tool: {remedy}.",
    )


def count_waiting(
    spark: SparkSession | None, rows: FileRows, config: MoveConfig, before: Boundary
) -> list[WaitingBuckets]:
    """Count waiting rows by bucket, late ones apart."""
    start = bucket_sql(columns.TIME, config.bucket_ms)
    late = "0" if before.time_ms is None else f"coalesce({columns.TIME} < {before.time_ms}, FALSE)::INTEGER"
    return [
        WaitingBuckets(count.values[0], bool(count.values[1]), count.rows, count.times)
        for count in count_by(spark, rows, start, late)
    ]


def part_of_bucket(
    spark: SparkSession | None,
    rows: FileRows,
    config: MoveConfig,
    plan: MovePlan,
    before: Boundary,
    realtime: HalfSnapshot,
) -> MovePlan:
    """The first part of a bucket that has more rows than one task may take."""
    time, bucket = columns.TIME, plan.buckets[0]
    # Its start may be a boundary made with other settings: rows before it are late.
    fresh = rows.restricted(f"{time} >= {bucket.start}")
    end: Slots | int = Slots(rounded_down(bucket.start, config.step_ms), bucket.end, config.step_ms)
    while not isinstance(end, int):
        mine = fresh.restricted(f"{time} >= {end.start} AND {time} < {end.end}")
        found = count_by(spark, mine, f"({time} - {end.start}) // {end.width}")
        counts = {count.values[0]: count.rows for count in found if count.values[0] is not None}
        end = end.divide(counts, config.max_records_per_task - plan.late_rows)
    part = fresh.restricted(f"{time} < {end}")
    waiting = [piece for piece in count_waiting(spark, part, config, before) if not piece.late]
    return until(plan, end, waiting[0], before, realtime.realtime.offsets)


@dataclass(frozen=True)
class Count:
    """How many rows have the same `values` of some terms, and their first and last time, epoch ms."""

    values: tuple[int | None, ...]
    rows: int
    times: tuple[int, int] | None

    def plus(self, other: Count) -> Count:
        """The sum of two counts for the same values."""
        both = [times for times in (self.times, other.times) if times is not None]
        times = (min(low for low, _ in both), max(high for _, high in both)) if both else None
        return Count(self.values, self.rows + other.rows, times)


def count_by(spark: SparkSession | None, rows: FileRows, *terms: str) -> list[Count]:
    """Count rows by SQL terms that are whole numbers.

    Few rows are counted in this process: that takes milliseconds, and a job of Spark's a tenth of a second.
    """
    if not rows.files:
        return []
    parts = _parts(rows.files, parallelism(spark))
    limits = TaskLimits.of(spark)
    workers = spark if rows.rows_max > _COUNTED_ROWS else None

    def work(number: int) -> Iterator[str]:
        time = columns.TIME
        statement = rows.select(f"{', '.join(terms)}, count(*), min({time}), max({time})", parts[number])
        with worker_database(limits) as database:
            yield json.dumps(database.execute(f"{statement} GROUP BY ALL").fetchall())

    counts: dict[tuple[int | None, ...], Count] = {}
    for text in run_numbered(workers, len(parts), work):
        for *values, count, low, high in json.loads(text):
            piece = Count(tuple(values), count, None if low is None else (low, high))
            before = counts.get(piece.values)
            counts[piece.values] = piece if before is None else before.plus(piece)
    return list(counts.values())


def _parts(files: Sequence[DataFile], count_max: int) -> list[list[DataFile]]:
    """The files in parts of about equal numbers of rows."""
    count = max(1, min(count_max, len(files), sum(file.rows for file in files) // _COUNTED_ROWS))
    parts: list[list[DataFile]] = [[] for _ in range(count)]
    rows = [0] * count
    for file in sorted(files, key=lambda file: file.rows, reverse=True):
        least = rows.index(min(rows))
        parts[least].append(file)
        rows[least] += file.rows
    return parts
