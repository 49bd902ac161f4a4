"""The files that an incremental flow has read: rows in a partition of REALTIME, committed with the files' rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hybrid.flow.declared.listing import SourceFile
from hybrid.lake.log import HalfSnapshot
from hybrid.table import columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_ledger(realtime: HalfSnapshot, table: str, flow: str, refresh: int) -> dict[str, int]:
    """Path and time of change (epoch ms) of every file that the flow has read since that refresh. Needs no JVM."""
    import pyarrow.parquet as pq

    names = [columns.CONNECTOR, columns.EPOCH, columns.REASON, columns.TIMESTAMP]
    ledger: dict[str, int] = {}
    for file in realtime.files:
        if file.segment == columns.files_segment(table):
            rows = pq.ParquetFile(file.path).read(columns=names).to_pylist()
            for row in rows:
                if row[columns.CONNECTOR] == flow and row[columns.EPOCH] == refresh:
                    ledger[row[columns.REASON]] = row[columns.TIMESTAMP]
    return ledger


def ledger_rows(spark: SparkSession, files: Sequence[SourceFile], first: int) -> DataFrame:
    """The rows for these files, numbered from `first`: OFFSET, REASON, TIMESTAMP."""
    rows = [(first + number, file.path, file.modified_ms) for number, file in enumerate(files)]
    return spark.createDataFrame(rows, f"{columns.OFFSET} bigint, {columns.REASON} string, {columns.TIMESTAMP} bigint")


def changed_since(files: Sequence[SourceFile], ledger: Mapping[str, int]) -> list[str]:
    """Files that changed after they were read. They are not read again."""
    return [file.path for file in files if ledger.get(file.path, file.modified_ms) != file.modified_ms]
