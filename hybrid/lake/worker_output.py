"""Worker functions that write files and tell of them in a text for each task; and the rows of a frame by segment."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from hybrid.lake.layout import indexed_columns
from hybrid.lake.log import open_half
from hybrid.lake.spark_connect import server_faults
from hybrid.lake.worker_files import WorkerFiles, bring_uploaded
from hybrid.lake.workers import RETURNED, Worker, error_from_json, error_to_json, map_in_arrow, raised_by_worker
from hybrid.runtime import durable
from hybrid.table.columns import SEGMENT

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

# The rows that a worker function of `returning` makes.
RESULT_DDL = "result string, stopped string"


def write_rows(frame: DataFrame, files: WorkerFiles, kind: str) -> list[Mapping[str, Any]]:
    """Let workers write the rows of a frame as files of a half, in their order. Returns their log entries.

    In each task the rows of a segment follow each other. They are for an operation of that kind, which commits them.
    After an error none of them is in the half.
    """
    half = files.half
    statistics = [name for name in indexed_columns(open_half(half).properties) if name in frame.columns]
    token = f"{kind}-{uuid.uuid4().hex[:16]}"  # files of an earlier attempt may be in the half's log
    try:
        entries = write_segments(frame, files, token, statistics)
        if files.store is not None:
            bring_uploaded(half, entries)
        durable.sync_folders([half / unquote(entry["add"]["path"]) for entry in entries], half)
    except BaseException:
        for path in half.glob(f"*/part-{token}-*.parquet"):
            path.unlink(missing_ok=True)
        raise
    return entries


def write_segments(
    frame: DataFrame, files: WorkerFiles, act_id: str, statistics: Sequence[str]
) -> list[Mapping[str, Any]]:
    """Let workers write the rows of a frame, a file for each run of rows of one segment. Returns their log entries."""
    texts = written_texts(frame, _segment_writer(files, act_id, list(statistics)))
    return [entry for text in texts for entry in json.loads(text)]


def written_texts(frame: DataFrame, worker: Worker) -> list[str]:
    """Let a worker function of `returning` run on the rows of a frame. Returns the texts of all tasks.

    Raises the error that a worker returned or, in a frame that the rows came from, raised.
    """
    return collected_texts(map_in_arrow(frame, worker, RESULT_DDL))


def collected_texts(results: DataFrame) -> list[str]:
    """The texts in a frame of `RESULT_DDL`, which a worker function of `returning` made. Errors as `written_texts`."""
    with server_faults(results.sparkSession), raised_by_worker():
        rows = results.collect()
    stopped = next((row["stopped"] for row in rows if row["stopped"] is not None), None)
    if stopped is not None:
        raise error_from_json(stopped)
    return [row["result"] for row in rows]


def returning(write: Callable[[Iterable[pa.RecordBatch]], list[str]]) -> Worker:
    """A worker function that gives the texts of `write`, or its error as a value: Spark would try again, and again."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        texts, stopped = [""], None
        try:
            texts = write(batches)
        except RETURNED as error:
            stopped = error_to_json(error)
        columns = [pa.array(texts, pa.string()), pa.array([stopped] * len(texts), pa.string())]
        yield pa.RecordBatch.from_arrays(columns, names=["result", "stopped"])

    return run


def _segment_writer(place: WorkerFiles, act_id: str, statistics: Sequence[str]) -> Worker:
    """Writes the rows of a task to files of their segments, one open at a time. Its text lists their entries."""

    def write(batches: Iterable[pa.RecordBatch]) -> list[str]:
        entries = []
        with place.opened(act_id, statistics) as files:
            for batch in batches:
                for segment, rows in _runs(batch):
                    entries += [files.close(name) for name in files.segments if name != segment]
                    files.open(segment).write(rows)
            entries += [files.close(name) for name in files.segments]
        return [json.dumps(entries)]

    return returning(write)


def _runs(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The runs of rows of one segment, without their segment column. Every column may hold nulls, as in a half."""
    import pyarrow as pa

    names, bare = batch.column(SEGMENT).to_pylist(), batch.drop_columns([SEGMENT])
    schema = pa.schema([pa.field(field.name, field.type) for field in bare.schema])
    bare = pa.RecordBatch.from_arrays(bare.columns, schema=schema)
    start = 0
    for end in range(1, len(names) + 1):
        if end == len(names) or names[end] != names[start]:
            yield names[start], bare.slice(start, end - start)
            start = end
