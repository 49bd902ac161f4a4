"""Frames over Parquet files of the home: read by Spark itself, or by its workers from the warehouse's store.

Workers that do not see the home's folders download a file and pass its rows on. They run our code for that, as for
writing: the store's keys are inside of the function, and Spark needs no client of the store (docs/adr/0071).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.lake.store_keys import store_key, workers_store
from hybrid.lake.worker_files import StoreAccess, worker_folder
from hybrid.lake.workers import RETURNED, Worker, fault_in_text, listed_rows, parallelism
from hybrid.table.columns import SEGMENT

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from hybrid.lake.commit_context import CommitContext

# Rows are passed on in batches: of the size that Spark itself makes.
_BATCH_ROWS = 10_000
_TASKS_PER_CORE = 4
_FILES_DDL = "key string, path string, segment string"


@dataclass(frozen=True)
class FrameFile:
    """A Parquet file by its path in the home; `segment` is the value of the segment column, which the file lacks.

    Where workers see the home it may be a folder of such files.
    """

    path: str
    segment: str | None = None


@dataclass(frozen=True)
class StoredFile:
    """The same with its key on the store. The path is for messages."""

    key: str
    path: str
    segment: str | None = None


def file_rows(
    bench: CommitContext, schema: StructType | str, files: Sequence[FrameFile], root: Path | None = None
) -> DataFrame:
    """The rows of some files, with the columns of a schema (or DDL). A column that a file lacks is null.

    `root` is the folder whose folders are segments, for files with a segment.
    """
    spark = bench.session
    if not files:
        return spark.createDataFrame([], schema)
    mirror = workers_store(bench, Path(files[0].path))
    if mirror is None:
        reader = spark.read.schema(schema)
        if root is not None:
            reader = reader.option("basePath", str(root))
        return reader.parquet(*(file.path for file in files))
    stored = [StoredFile(store_key(mirror, Path(file.path)), file.path, file.segment) for file in files]
    return stored_file_rows(bench, schema, stored, StoreAccess.of_process(mirror.url, mirror.tuning))


def stored_file_rows(
    bench: CommitContext, schema: StructType | str, files: Sequence[StoredFile], store: StoreAccess
) -> DataFrame:
    """The rows of files on the store, as `file_rows` gives them. The frame has the order of the files."""
    from pyspark.sql.pandas.types import to_arrow_schema

    spark = bench.session
    if not files or isinstance(schema, str):
        nothing = spark.createDataFrame([], schema)
        if not files:
            return nothing
        schema = nothing.schema
    tasks = min(len(files), _TASKS_PER_CORE * parallelism(spark))
    read = _reader(to_arrow_schema(schema, timezone="UTC"), store)
    rows = [(file.key, file.path, file.segment) for file in files]
    return listed_rows(spark, rows, _FILES_DDL, tasks).mapInArrow(read, schema)


def _reader(schema: pa.Schema, store: StoreAccess) -> Worker:
    """The function that Spark runs in its workers, on rows that name files."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            client = store.client()
            for batch in batches:
                for file in batch.to_pylist():
                    with worker_folder() as folder:
                        path = folder / "rows.parquet"
                        if not client.download(file["key"], path):
                            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), file["path"])
                        yield from _rows(path, file["segment"], schema)
        except RETURNED as error:
            raise fault_in_text(error) from None

    return read


def _rows(path: Path, segment: str | None, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a file with the schema's columns and types: older files have narrower ones, or lack them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def column(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
        if segment is not None and field.name == SEGMENT:
            return pa.repeat(pa.scalar(segment, field.type), batch.num_rows)
        place = batch.schema.get_field_index(field.name)
        if place < 0:
            return pa.nulls(batch.num_rows, field.type)
        found = batch.column(place)
        return found if found.type == field.type else found.cast(field.type)

    # Spark's timestamps of 96 bits reach further than nanoseconds do.
    with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
        there = set(file.schema_arrow.names)
        names = [field.name for field in schema if field.name in there]
        for batch in file.iter_batches(_BATCH_ROWS, columns=names or None):
            yield pa.RecordBatch.from_arrays([column(batch, field) for field in schema], schema=schema)
