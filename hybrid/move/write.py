"""Writes the rows of a move to the files of its segments: from a Spark frame to Parquet files in a folder.

Spark's workers write them, as for ingestion (ADR 13). Each worker has a range of time, in order, so it has one file
open at a time. It begins the next file where a bucket ends or a file is full.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config.table_config import BucketConfig, Half, TableSpec
from hybrid.lake.files import LaidFile, RowsFile, file_name, path_in_half
from hybrid.lake.layout import physical_columns, quoted, statistics_columns
from hybrid.lake.staged_frames import StagedPlace
from hybrid.lake.worker_output import returning, written_texts
from hybrid.lake.workers import Worker
from hybrid.move.partitioning import divided_by
from hybrid.move.task_splits import TaskSplit
from hybrid.table import columns

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from hybrid.lake.commit_context import CommitContext

# Limits of a file: rows, and their bytes in memory. Rows to be sorted again are in memory as a whole.
_FILE_ROWS, _FILE_BYTES = 1_000_000, 128 << 20


def written_columns(spec: TableSpec, half: Half = Half.OFFLINE) -> list[tuple[str, str]]:
    """(name, Spark type) of the columns in a half's files; the segment is in their folder's name."""
    return [column for column in physical_columns(spec, half) if column[0] != columns.SEGMENT]


def written_schema(spec: TableSpec, half: Half) -> pa.Schema:
    """The Arrow schema of `written_columns`."""
    import pyarrow as pa

    from hybrid.lake.create import arrow_schema

    whole = arrow_schema(spec, half)
    return pa.schema([whole.field(name) for name, _ in written_columns(spec, half)])


def write_files(
    bench: CommitContext, rows: DataFrame, spec: TableSpec, config: BucketConfig, folder: Path, cuts: Sequence[int]
) -> list[LaidFile]:
    """Write `rows` to `folder`, in files of one bucket and at most `max_records_per_segment` rows each.

    If the table divides rows by their values, a file also belongs to one partition.

    `cuts` are the times at which a task ends; without a time column, Kafka's timestamps.
    """
    time = columns.TIME if spec.time_column is not None else columns.TIMESTAMP
    task = quoted("_hy_task")
    divided = rows.selectExpr("*", f"{_number_of(time, cuts, 0, len(cuts))} AS _hy_task")
    order = [time, *(name for name in columns.ARRIVAL if name != time)]
    sorted_rows = (
        divided.repartitionById(len(cuts) + 1, task)
        .sortWithinPartitions(*(quoted(name) for name in order))
        .select(*(quoted(name) for name, _ in written_columns(spec)))
    )
    place = StagedPlace.of(bench, folder)
    texts = written_texts(sorted_rows, _writer(spec, config, place))
    files = [LaidFile(**json.loads(text)) for text in texts]
    place.bring([(file.name, file.bytes) for file in files])
    return files


def _number_of(column: str, cuts: Sequence[int], low: int, high: int) -> str:
    """SQL for the number of cuts that a value has passed; a binary search, because it is evaluated for every row."""
    if low == high:
        return str(low)
    middle = (low + high) // 2
    below, above = _number_of(column, cuts, low, middle), _number_of(column, cuts, middle + 1, high)
    return f"IF({column} < {cuts[middle]}, {below}, {above})"


def _writer(spec: TableSpec, config: BucketConfig, place: StagedPlace) -> Worker:
    """The function that Spark runs in its workers, on the rows of one task in the order of time."""
    write_batches = file_writer(spec, config, place)

    def write(batches: Iterable[pa.RecordBatch]) -> list[str]:
        return [json.dumps(asdict(file)) for file in write_batches(batches)]

    return returning(write)


def file_writer(
    spec: TableSpec, config: BucketConfig, place: StagedPlace
) -> Callable[[Iterable[pa.RecordBatch]], list[LaidFile]]:
    """A function that writes rows, which are in the order of time, to staged files. Make it in the driver."""
    by_time = not spec.sort_columns or (spec.sort_columns == (spec.time_column,) and _is_time_alone(spec))

    def write(batches: Iterable[pa.RecordBatch]) -> list[LaidFile]:
        schema = written_schema(spec, Half.OFFLINE)
        files: list[LaidFile] = []
        statistics = statistics_columns(spec, Half.OFFLINE)
        with place.opened() as (folder, put):
            for partition, pieces in _files_of(batches, spec, config):
                file = RowsFile(folder, "staged", statistics, is_durable=place.is_durable)
                typed = (as_schema(piece, schema) for piece in pieces)
                for piece in typed if by_time else _sorted_by(typed, spec.sort_columns):
                    file.write(piece)
                files.append(replace(file.close(), partition=partition))
                put(files[-1].name)
        return files

    return write


def _is_time_alone(spec: TableSpec) -> bool:
    """Whether the time column orders rows exactly like their time: texts may not, and other formats are finer."""
    return (
        spec.time_field is not None
        and spec.time_field.time_format is not None
        and spec.time_field.time_format.is_millis
    )


def _files_of(
    batches: Iterable[pa.RecordBatch], spec: TableSpec, config: BucketConfig
) -> Iterator[tuple[int | None, Iterator[pa.RecordBatch]]]:
    """The partition and the pieces of each file. Consume the pieces of one file before requesting the next."""
    rows_max = min(_FILE_ROWS, config.max_records_per_segment)
    waiting = _by_partition(_by_bucket(batches, config.bucket_ms), spec)
    following = next(waiting, None)

    def pieces() -> Iterator[pa.RecordBatch]:
        nonlocal following
        assert following is not None
        place, rows, size = following[0], 0, 0
        while following is not None and following[0] == place and rows < rows_max and size < _FILE_BYTES:
            piece = following[1].slice(0, rows_max - rows)
            rest = following[1].slice(piece.num_rows)
            following = (place, rest) if rest.num_rows else next(waiting, None)
            rows, size = rows + piece.num_rows, size + piece.nbytes
            yield piece

    while following is not None:
        yield following[0][1], pieces()


_Placed = tuple[tuple[int | None, int | None], "pa.RecordBatch"]


def _by_partition(buckets: Iterable[tuple[int | None, pa.RecordBatch]], spec: TableSpec) -> Iterator[_Placed]:
    """Rows by bucket and partition, in their order. A task holds its rows of one bucket in memory."""
    if not spec.partitions:
        yield from (((bucket, None), batch) for bucket, batch in buckets)
        return
    for bucket, batches in groupby(buckets, key=lambda item: item[0]):
        divided: dict[int, list[pa.RecordBatch]] = defaultdict(list)
        for _, batch in batches:
            for partition, rows in divided_by(batch, spec.partitions):
                divided[partition].append(rows)
        for partition, pieces in sorted(divided.items()):
            yield from (((bucket, partition), piece) for piece in pieces)


def _by_bucket(batches: Iterable[pa.RecordBatch], period_ms: int) -> Iterator[tuple[int | None, pa.RecordBatch]]:
    """The rows of each bucket, by its start, in their order; undivided without a time column."""
    import numpy as np

    for batch in batches:
        times = batch.column(columns.TIME)
        if not batch.num_rows or times.null_count:
            if batch.num_rows:
                yield None, batch
            continue
        starts = times.to_numpy() // period_ms * period_ms
        edges = [0, *(np.flatnonzero(np.diff(starts)) + 1).tolist(), batch.num_rows]
        for low, high in pairwise(edges):
            yield int(starts[low]), batch.slice(low, high - low)


def as_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with the types that ingestion writes: a column has one type in all files of a half."""
    import pyarrow as pa

    arrays = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _sorted_by(pieces: Iterable[pa.RecordBatch], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """All rows sorted by `names`, nulls first and NaN last like Spark; equal rows keep their order."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = pa.Table.from_batches(list(pieces))
    keys: list[pa.ChunkedArray] = []
    for name in names:
        column = table.column(name)
        if pa.types.is_floating(column.type):
            keys.append(pc.fill_null(pc.is_nan(column), False))
        keys.append(column)
    numbered = pa.table(keys, names=[str(place) for place in range(len(keys))])
    order = [(str(place), "ascending", "at_start") for place in range(len(keys))]
    yield from table.take(pc.sort_indices(numbered, order)).to_batches()


def put_files(staging: Path, half: Path, parts: Mapping[str, TaskSplit], act_id: str) -> list[dict[str, object]]:
    """Move the staged files of each segment, by its name, into the half as files of an operation.

    Returns their log entries.
    """
    entries = []
    for name, part in parts.items():
        (half / path_in_half(name, "")).mkdir(exist_ok=True)
        for staged in part.files:
            file = replace(staged, name=file_name(act_id))
            os.utime(staging / staged.name)  # VACUUM spares young files that no commit names, as in flight
            (staging / staged.name).rename(half / path_in_half(name, file.name))
            entries.append(file.entry(name))
    return entries
