"""Evaluates the condition on files: the number of rows in each, and of matching rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from hybrid.config.table_config import Half
from hybrid.lake.exact_decimals import with_exact_decimals
from hybrid.lake.layout import ddl_of, physical_columns, quoted
from hybrid.replace.purge.places import is_record, is_rejected
from hybrid.replace.purge.request import PurgeScope
from hybrid.table import columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

CONDEMNED = "_hy_condemned"
_FILE, _DIGEST = "_hy_file", "_hy_raw_digest"
_LABEL = "reading files"
FILES_MAX = 500  # of one Spark job: each is listed in its plan, and progress moves job by job


@dataclass(frozen=True)
class MatchingRows:
    """A file with its numbers of rows and of matching rows. `torn`: unreadable, because its writer was killed."""

    path: Path
    rows: int
    matching: int
    torn: bool = False


def scan(
    scene: PurgeScope, files: Iterable[Path], raws: DataFrame | None, *, files_max: int = FILES_MAX
) -> list[MatchingRows]:
    """The number of rows and matches of each file; all must be readable. `raws`: digests of messages to remove."""
    matches: list[MatchingRows] = []
    rows = [path for path in files if not is_record(scene.table.spec, path)]
    progress = scene.table.bench.progress
    for start in range(0, len(rows), files_max):
        progress.step(_LABEL, start, len(rows))
        matches += _counted(_marked(scene, rows[start : start + files_max], raws))
    if rows:
        progress.step(_LABEL, len(rows), len(rows))
    return matches


def messages_of(scene: PurgeScope, files: Iterable[Path], raws: DataFrame | None) -> list[dict[str, Any]]:
    """The offsets of matching messages of the stream: topic, epoch, partition, first, last, and their number."""
    from pyspark.sql import functions as F

    stream = scene.table.spec.stream
    paths = [path for path in files if not is_record(scene.table.spec, path)]
    if stream is None or not paths:
        return []
    place = [quoted(name) for name in (columns.TOPIC, columns.EPOCH, columns.PARTITION)]
    offset = quoted(columns.OFFSET)
    of_rows = [path for path in paths if not is_rejected(scene.table.spec, path)]
    of_rejected = [path for path in paths if is_rejected(scene.table.spec, path)]
    parts = []
    if of_rows:
        rows = read_files(scene, of_rows).withColumns(scene.filled())
        matching = with_exact_decimals(rows, lambda exact: exact.where(scene.matches()).select(*place, offset))
        parts.append(matching)
    if of_rejected:
        rejected = with_condemned(read_files(scene, of_rejected), raws).where(CONDEMNED)
        parts.append(rejected.select(*place, offset))
    found = reduce(lambda one, other: one.unionByName(other), parts)
    found = found.where(quoted(columns.TOPIC).isin(list(stream.topics)))
    ranges = found.groupBy(*place).agg(F.min(offset), F.max(offset), F.count_distinct(offset)).collect()
    names = ("topic", "epoch", "partition", "first", "last", "messages")
    return [dict(zip(names, row, strict=True)) for row in sorted(tuple(row) for row in ranges)]


def read_files(scene: PurgeScope, files: Iterable[Path]) -> DataFrame:
    """The stored rows of some files of any place. Columns that a file lacks are null."""
    columns_read = [pair for pair in physical_columns(scene.table.spec, Half.REALTIME) if pair[0] != columns.SEGMENT]
    return scene.table.bench.spark.read.schema(ddl_of(columns_read)).parquet(*(str(path) for path in files))


def digest() -> Column:
    """The digest that identifies a rejected message: messages of equal bytes are one to the condition."""
    from pyspark.sql import functions as F

    return F.sha2(quoted(columns.RAW), 256)


def with_condemned(rows: DataFrame, raws: DataFrame | None) -> DataFrame:
    """Adds CONDEMNED: whether the message of a rejected row is among `raws`; never null."""
    from pyspark.sql import functions as F

    if raws is None:
        return rows.withColumn(CONDEMNED, F.lit(False))
    named = F.broadcast(raws.select(F.col("raw").alias(_DIGEST), F.lit(True).alias(CONDEMNED)))
    joined = rows.join(named, digest() == F.col(_DIGEST), "left").drop(_DIGEST)
    return joined.withColumn(CONDEMNED, F.coalesce(F.col(CONDEMNED), F.lit(False)))


def _marked(scene: PurgeScope, files: Sequence[Path], raws: DataFrame | None) -> DataFrame:
    """For each row of some files, the file's name and whether the row matches."""
    rejected = [path for path in files if is_rejected(scene.table.spec, path)]
    others = [path for path in files if not is_rejected(scene.table.spec, path)]
    parts = [_matching(scene, others)] if others else []
    if rejected:
        parts.append(_goes_raw(scene, rejected, raws))
    return reduce(lambda one, other: one.unionByName(other), parts)


def _matching(scene: PurgeScope, files: list[Path]) -> DataFrame:
    from pyspark.sql import functions as F

    rows = read_files(scene, files)
    selected = F.col("_metadata.file_path").alias(_FILE), scene.matches().alias("goes")
    return with_exact_decimals(rows.withColumns(scene.filled()), lambda exact: exact.select(*selected))


def _goes_raw(scene: PurgeScope, files: list[Path], raws: DataFrame | None) -> DataFrame:
    from pyspark.sql import functions as F

    rows = read_files(scene, files).select(F.col("_metadata.file_path").alias(_FILE), quoted(columns.RAW))
    return with_condemned(rows, raws).select(_FILE, F.col(CONDEMNED).alias("goes"))


def _counted(frame: DataFrame) -> list[MatchingRows]:
    from pyspark.sql import functions as F

    counts = frame.groupBy(_FILE).agg(F.count("*"), F.count_if("goes")).collect()
    return [MatchingRows(Path(unquote(urlparse(row[0]).path)), row[1], row[2]) for row in counts]


def whole_files(files: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Readable files, and torn ones. A file that was deleted in between is neither."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    whole, torn = [], []
    for path in files:
        try:
            pq.read_metadata(path)
        except FileNotFoundError:
            continue
        except pa.ArrowInvalid:
            torn.append(path)
        else:
            whole.append(path)
    return whole, torn
