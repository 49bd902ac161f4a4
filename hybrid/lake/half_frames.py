"""The stored rows of a half at one version, as a frame of Spark's."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from hybrid.lake.layout import quoted
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.lake.log_entries import DataFile
from hybrid.lake.spark_paths import has_pattern
from hybrid.table.columns import SEGMENT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Spark lists more files than that in a job of its own (spark.sql.sources.parallelPartitionDiscovery.threshold).
_LISTED_MAX = 32


def stored_rows(spark: SparkSession, half: HalfSnapshot, files: Sequence[DataFile] | None = None) -> DataFrame:
    """All stored rows of the half's version; with `files`, at least the rows of these files of it.

    A few files are read as Parquet. Delta would first reconstruct the version's state and filter its files, with
    several Spark jobs that cost more than reading a bucket.
    """
    chosen = half.files if files is None else files
    if len(chosen) > _LISTED_MAX or not _is_plain(half, chosen):
        return rows_by_delta(spark, half)
    from pyspark.sql.types import StructType

    schema = StructType.fromJson(json.loads(half.columns))
    if not chosen:
        return spark.createDataFrame([], schema)
    reader = spark.read.schema(schema).option("basePath", str(half.path))
    return reader.parquet(*(file.path for file in chosen)).select(*(quoted(name) for name in schema.names))


def newest_rows(spark: SparkSession, path: Path) -> DataFrame:
    """All stored rows of the newest version of the half at `path`, as of this call."""
    return stored_rows(spark, open_half(path))


def rows_by_delta(spark: SparkSession, half: HalfSnapshot) -> DataFrame:
    """All stored rows of the half's version, as Delta reads them. It refuses one beyond the retention."""
    return spark.read.format("delta").option("versionAsOf", half.version).load(str(half.path))


def rows_in(spark: SparkSession, half: HalfSnapshot, segments: Collection[str]) -> DataFrame:
    """The stored rows of some segments of the half's version."""
    rows = stored_rows(spark, half, [file for file in half.files if file.segment in segments])
    return rows.where(quoted(SEGMENT).isin(list(segments)))


def no_rows(spark: SparkSession, half: HalfSnapshot) -> DataFrame:
    """None of the half's rows, with its columns."""
    return stored_rows(spark, half, ())


def _is_plain(half: HalfSnapshot, files: Sequence[DataFile]) -> bool:
    """Whether Parquet alone tells the rows: nobody marked rows as deleted, or renamed columns, and paths tell segments.

    Spark takes some characters of paths for patterns, and the codes in a folder's name for single characters. delta-rs
    encodes the bytes of UTF-8.
    """
    if half.has_mapped_columns or half.has_deletion_vectors:
        return False
    start = f"{half.path}/{SEGMENT}="
    return not has_pattern(str(half.path)) and all(
        file.path.startswith(start)
        and unquote(file.path[len(start) :].partition("/")[0], encoding="latin-1") == file.segment
        for file in files
    )
