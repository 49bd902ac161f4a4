"""The stored rows of a half at one version, as a frame of Spark's."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from hybrid.errors import ConflictError, DataError
from hybrid.lake.delta_errors import is_missing_file
from hybrid.lake.file_frames import FrameFile, file_rows
from hybrid.lake.layout import quoted
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.lake.log_entries import DataFile
from hybrid.lake.spark_paths import has_pattern
from hybrid.lake.transaction import changed_by_others
from hybrid.lake.workers import worker_fault
from hybrid.table.columns import SEGMENT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from hybrid.lake.commit_context import CommitContext

# Spark lists more files than that in a job of its own (spark.sql.sources.parallelPartitionDiscovery.threshold).
_LISTED_MAX = 32


def stored_rows(bench: CommitContext, half: HalfSnapshot, files: Sequence[DataFile] | None = None) -> DataFrame:
    """All stored rows of the half's version; with `files`, at least the rows of these files of it.

    A few files are read as Parquet. Delta would first reconstruct the version's state and filter its files, with
    several Spark jobs that cost more than reading a bucket. Workers that do not see the home read any number of files
    as Parquet. ConflictError when Delta alone could read them.
    """
    chosen = half.files if files is None else files
    if bench.has_shared_files and (len(chosen) > _LISTED_MAX or not _is_plain(half, chosen)):
        return bench.spark.read.format("delta").option("versionAsOf", half.version).load(str(half.path))
    if _needs_delta(half):
        raise changed_by_others(
            half.path, "it has mapped columns or deletion vectors, and Spark's workers do not see it"
        )
    from pyspark.sql.types import StructType

    schema = StructType.fromJson(json.loads(half.columns))
    rows = file_rows(bench, schema, [FrameFile(file.path, file.segment) for file in chosen], half.path)
    return rows.select(*(quoted(name) for name in schema.names))


def newest_rows(bench: CommitContext, path: Path) -> DataFrame:
    """All stored rows of the newest version of the half at `path`, as of this call."""
    return stored_rows(bench, open_half(path))


def rows_in(bench: CommitContext, half: HalfSnapshot, segments: Collection[str]) -> DataFrame:
    """The stored rows of some segments of the half's version."""
    return _of(stored_rows(bench, half, [file for file in half.files if file.segment in segments]), segments)


@contextmanager
def refused_when_gone(refusal: ConflictError) -> Iterator[None]:
    """Raise `refusal` when rows of an old version, read in this context, are no longer retained.

    A fault of the store is raised as itself: it may have the rows, and only not give them now.
    """
    from pyspark.errors import PySparkException

    try:
        yield
    except Exception as error:  # a file that goes while it is read is an error of py4j
        fault = worker_fault(error)
        if fault is not None:
            raise fault from error
        if isinstance(error, (PySparkException, DataError)) or is_missing_file(error):
            raise refusal from error
        raise


def no_rows(bench: CommitContext, half: HalfSnapshot) -> DataFrame:
    """None of the half's rows, with its columns."""
    return stored_rows(bench, half, ())


def _of(rows: DataFrame, segments: Collection[str]) -> DataFrame:
    return rows.where(quoted(SEGMENT).isin(sorted(segments)))


def _needs_delta(half: HalfSnapshot) -> bool:
    """Whether the files alone do not tell the rows: somebody marked rows as deleted, or renamed columns."""
    return half.has_mapped_columns or half.has_deletion_vectors


def _is_plain(half: HalfSnapshot, files: Sequence[DataFile]) -> bool:
    """Whether Parquet alone tells the rows: nobody marked rows as deleted, or renamed columns, and paths tell segments.

    Spark takes some characters of paths for patterns, and the codes in a folder's name for single characters. delta-rs
    encodes the bytes of UTF-8.
    """
    if _needs_delta(half):
        return False
    start = f"{half.path}/{SEGMENT}="
    return not has_pattern(str(half.path)) and all(
        file.path.startswith(start)
        and unquote(file.path[len(start) :].partition("/")[0], encoding="latin-1") == file.segment
        for file in files
    )
