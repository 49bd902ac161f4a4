"""Moves rows from REALTIME files to the files of segments in Spark's workers, where rows need not be combined.

If these do not see the files, threads of this process take their place.

A worker reads its range of time with DuckDB, sorted, as Arrow, and writes it (docs/adr/0047). Without the JVM's rows
and without a shuffle a row costs about a third of the processor time. An upsert table moves the latest row of each key
in a bucket. If one task holds the whole bucket, it finds these rows itself; otherwise a job before it does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config.table_config import BucketConfig, MergeType, TableSpec
from hybrid.errors import DataError
from hybrid.lake.files import LaidFile
from hybrid.lake.log_entries import DataFile
from hybrid.lake.parquet_paths import paths_sql
from hybrid.lake.staged_frames import StagedPlace
from hybrid.lake.workers import run_numbered
from hybrid.move.file_reader import FILE, PLACES, ROW, FileRows, TaskLimits, identifier, worker_database
from hybrid.move.latest import AT, KeySlice, losers_sql, slices, write_losers
from hybrid.move.time_ranges import TimeRange, groups
from hybrid.move.write import file_writer, written_columns
from hybrid.table import columns

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyspark.sql import SparkSession

# Rows that go from DuckDB to the Parquet writer at once: as many as have about so many bytes in memory.
_BATCH_BYTES, _BATCH_ROWS_MIN, _BATCH_ROWS_MAX = 16 << 20, 256, 65_536
# How many bytes in memory a byte of a file may have: files are encoded and compressed.
_UNPACKED = 8
_LOST = "lost"


@dataclass(frozen=True)
class DirectResult:
    """The written files, and how many rows a newer row of their key left out."""

    files: list[LaidFile]
    left_out: int


def is_direct(config: BucketConfig, spec: TableSpec) -> bool:
    """Whether rows are moved as they are stored: all of them, or the latest of each key.

    The latest rows are told by the place in their file, which a column of the table may hide from DuckDB.
    """
    if config.round_ms is not None:
        return False
    hides_places = any(name.lower() in PLACES for name in spec.schema.column_names)
    return config.merge_type is MergeType.CONCAT or (config.merge_type is MergeType.LATEST and not hides_places)


@dataclass(frozen=True)
class _WriteTask:
    """The range of time that one task writes. `losers` are the files with places to leave out; None: it finds them."""

    range: TimeRange
    losers: Sequence[str] | None


def write_directly(
    spark: SparkSession | None,
    rows: FileRows,
    spec: TableSpec,
    config: BucketConfig,
    folder: Path,
    cuts: Sequence[int],
    rows_of_buckets: Mapping[int, int],
) -> DirectResult:
    """Write rows to files in a folder, as `hybrid.move.write.write_files` does, after the merge type was applied."""
    column = columns.TIME if spec.time_column is not None else columns.TIMESTAMP
    grouped = groups(column, cuts, config.bucket_ms if spec.time_column is not None else None)
    folder.mkdir(parents=True, exist_ok=True)
    merges, limits = config.merge_type is MergeType.LATEST, TaskLimits.of(spark, folder)
    shared = [group for group in grouped if len(group) > 1 and rows.within(_whole(group))] if merges else []
    losers: dict[int, list[str]] = {}
    if shared:
        keys = [key for group in shared for key in slices(_whole(group), _rows_of(group, rows_of_buckets, rows), spec)]
        paths = write_losers(spark, rows, spec, config, keys, folder / "losers")
        losers = {id(group): paths for group in shared}
    tasks = [_WriteTask(part, losers.get(id(group))) for group in grouped for part in group]
    write = file_writer(spec, config, StagedPlace.here(folder))
    order = ", ".join(f"{name} ASC NULLS FIRST" for name in dict.fromkeys((column, *columns.ARRIVAL)))
    names = ", ".join(identifier(name) for name, _ in written_columns(spec))

    def work(number: int) -> Iterator[str]:
        task = tasks[number]
        with worker_database(limits) as database:
            left_out = _find_losers(database, rows, spec, config, task) if merges else 0
            chosen = rows.restricted(task.range.condition)
            files = rows.within(task.range)
            if left_out:
                source = chosen.select_placed("*", files)
                select = f"SELECT {names} FROM ({source}) ANTI JOIN {_LOST} USING ({FILE}, {ROW})"
            else:
                select = chosen.select(names, files)
            sorted_rows = database.sql(f"{select} ORDER BY {order}").to_arrow_reader(batch_rows(files)) if files else ()
            written = [asdict(file) for file in write(sorted_rows)]
            yield json.dumps({"files": written, "left_out": left_out})

    results = [json.loads(text) for text in run_numbered(spark, len(tasks), work)]
    return DirectResult(
        [LaidFile(**file) for result in results for file in result["files"]],
        sum(result["left_out"] for result in results),
    )


def _find_losers(
    database: DuckDBPyConnection, rows: FileRows, spec: TableSpec, config: BucketConfig, task: _WriteTask
) -> int:
    """Put the places of a task's losing rows into a temporary table. Returns how many."""
    if task.losers is None and not rows.within(task.range):
        return 0
    if task.losers is None:
        found = losers_sql(rows, spec, config, KeySlice(task.range))
    else:
        mine = TimeRange(AT, task.range.low, task.range.high).condition
        found = f"SELECT * FROM read_parquet([{paths_sql(task.losers)}]) WHERE {mine}"
    database.execute(f"CREATE TEMP TABLE {_LOST} AS {found}")
    # Nulls do not count as distinct. Results are read to the end, before the next statement.
    place = f"{FILE}::BIGINT * (1::BIGINT << 40) + {ROW}"
    ((count, distinct),) = database.execute(f"SELECT count(*), count(DISTINCT {place}) FROM {_LOST}").fetchall()
    if count != distinct:
        raise DataError(f"Of {count} rows of '{spec.name}' to leave out, only {distinct} have a place of their own.")
    return int(count)


def batch_rows(files: Sequence[DataFile]) -> int:
    """How many rows of some files are read at once, so that long rows do not fill the memory."""
    rows, size = sum(file.rows for file in files), sum(file.bytes for file in files)
    fitting = _BATCH_BYTES * rows // max(1, size * _UNPACKED)
    return max(_BATCH_ROWS_MIN, min(fitting, _BATCH_ROWS_MAX))


def _whole(group: Sequence[TimeRange]) -> TimeRange:
    return TimeRange(group[0].column, group[0].low, group[-1].high)


def _rows_of(group: Sequence[TimeRange], rows_of_buckets: Mapping[int, int], rows: FileRows) -> int:
    """The number of rows in a group of ranges; without buckets at most as many as the files hold."""
    low, high = group[0].low, group[-1].high
    if not rows_of_buckets:
        return rows.rows_max
    return sum(
        count
        for start, count in rows_of_buckets.items()
        if (low is None or start >= low) and (high is None or start < high)
    )
