"""Stages a flow's rows beside the halves: converts, counts and numbers them before any lock is taken."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half, TableSpec
from hybrid.flow.declared.convert import stored_rows, with_rejected
from hybrid.lake.layout import physical_columns, quoted
from hybrid.lake.spark_paths import literal_paths
from hybrid.table import columns

if TYPE_CHECKING:
    import pyarrow.parquet as pq
    from pyspark.sql import Column, DataFrame, SparkSession

# A row's position in the staged files: the part, and its place in it. Together they number rows without gaps.
_PART, _PLACE = "_hy_part", "_hy_place"
_PLACE_BITS = 33  # of Spark's monotonically increasing ids


@dataclass(frozen=True)
class StagedStream:
    """Staged rows: `rows` that fit and `rejected` ones. `frame` has user columns, TIME, REASON, RAW and OFFSET.

    OFFSET numbers the rows of both kinds from 0.
    """

    frame: DataFrame
    rows: int
    rejected: int

    @property
    def total(self) -> int:
        """The number of rows of both kinds."""
        return self.rows + self.rejected

    @property
    def good(self) -> DataFrame:
        """The rows that fit."""
        return self.frame.where(quoted(columns.REASON).isNull())

    @property
    def bad(self) -> DataFrame:
        """The rejected rows. Their user columns are not stored (`bare` of `laid_out`)."""
        return self.frame.where(quoted(columns.REASON).isNotNull())


def stage_rows(
    spark: SparkSession, spec: TableSpec, frame: DataFrame, rejected: DataFrame | None, folder: Path
) -> StagedStream:
    """Stages a flow's frame, and the rows rejected while reading it, in `folder`. The flow's work happens here."""
    from pyspark.sql import functions as F

    number = F.monotonically_increasing_id()
    rows = with_rejected(stored_rows(frame, spec), rejected)
    numbered = rows.withColumn(_PART, F.shiftright(number, _PLACE_BITS)).withColumn(
        _PLACE, number.bitwiseAND((1 << _PLACE_BITS) - 1)
    )
    numbered.write.parquet(str(folder))
    staged = spark.read.schema(numbered.schema).parquet(*literal_paths([str(folder)]))
    counts = _counts(folder)
    parts = sorted(counts)
    starts = dict(zip(parts, accumulate((counts[part][0] for part in parts), initial=0), strict=False))
    refused = sum(count for _, count in counts.values())
    offset = _start(starts) + quoted(_PLACE)
    result = staged.withColumn(columns.OFFSET, offset.cast("bigint")).drop(_PART, _PLACE)
    return StagedStream(result, sum(count for count, _ in counts.values()) - refused, refused)


def _counts(folder: Path) -> dict[int, tuple[int, int]]:
    """How many rows each part of the staged files has, and how many of them are rejected.

    Their footers say it, mostly: a query of Spark takes longer than to stage few rows.
    """
    import pyarrow.parquet as pq

    counts: dict[int, tuple[int, int]] = {}
    for path in folder.glob("*.parquet"):
        with pq.ParquetFile(path) as file:
            if file.metadata.num_rows:
                part = next(file.iter_batches(1, columns=[_PART])).column(0)[0].as_py()
                rows, rejected = counts.get(part, (0, 0))
                counts[part] = (rows + file.metadata.num_rows, rejected + _rejected_in(file))
    return counts


def _rejected_in(file: pq.ParquetFile) -> int:
    """How many rows have a reason. Without statistics, as where reasons are long, the column is read."""
    place = next(leaf for leaf in range(len(file.schema)) if file.schema.column(leaf).path == columns.REASON)
    rejected: int = file.metadata.num_rows
    for number in range(file.num_row_groups):
        statistics = file.metadata.row_group(number).column(place).statistics
        if statistics is not None and statistics.has_null_count:
            rejected -= statistics.null_count
        else:
            rejected -= file.read_row_group(number, columns=[columns.REASON]).column(0).null_count
    return rejected


def _start(starts: dict[int, int]) -> Column:
    from pyspark.sql import functions as F

    if not starts:
        return F.lit(0)
    pairs = [F.lit(value) for pair in starts.items() for value in pair]
    return F.element_at(F.create_map(*pairs), quoted(_PART))


def laid_out(
    spec: TableSpec, half: Half, frame: DataFrame, hidden: dict[str, Column | str | int | None], *, bare: bool = False
) -> DataFrame:
    """Rows with every stored column of a half; `hidden` provides the columns that the frame lacks.

    `bare`: the user columns are null, as in rejected rows.
    """
    from pyspark.sql import Column
    from pyspark.sql import functions as F

    users = set(spec.schema.column_names)
    selected = []
    for name, kind in physical_columns(spec, half):
        if name in hidden:
            value = hidden[name]
            column = value if isinstance(value, Column) else F.lit(value)
        elif name in frame.columns and not (bare and name in users):
            column = quoted(name)
        else:
            column = F.lit(None)
        selected.append(column.cast(kind).alias(name))
    return frame.select(*selected)
