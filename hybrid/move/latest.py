"""The rows of a move that lose against a newer row of their key in the same bucket, found in Spark's workers.

Only the columns that decide are read: key, order, time. The result is the places of the losing rows. Whoever writes the
rows of a range of time reads these places and leaves them out.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config.table_config import BucketConfig, TableSpec
from hybrid.lake.workers import run_numbered
from hybrid.move.file_reader import FILE, ROW, FileRows, TaskLimits, bucket_sql, identifier, worker_database
from hybrid.move.time_ranges import TimeRange
from hybrid.schema.types import DataType
from hybrid.table import columns
from hybrid.table.upsert_order import winners_first_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A task finds the losers among at most so many rows. Up to a few tasks take fewer, so that they share the work.
_ROWS_MAX, _ROWS, _FEW = 2_000_000, 250_000, 4
# The columns of a losing row: its value of the column that divides tasks, the number of its file, and its own there.
AT = "_hy_at"


@dataclass(frozen=True)
class KeySlice:
    """The keys of one task: those whose hash leaves `number` when it is divided by `count`, in a range of time."""

    range: TimeRange
    number: int = 0
    count: int = 1


def slices(group: TimeRange, rows: int, spec: TableSpec, rows_of_few: int = _ROWS) -> list[KeySlice]:
    """The tasks that find the losers among `rows` rows of a range of time."""
    count = max(ceil(rows / _ROWS_MAX), min(ceil(rows / rows_of_few), _FEW)) if _hashed(spec) else 1
    return [KeySlice(group, number, count) for number in range(count)]


def write_losers(
    spark: SparkSession | None,
    rows: FileRows,
    spec: TableSpec,
    config: BucketConfig,
    tasks: Sequence[KeySlice],
    folder: Path,
) -> list[str]:
    """Write the places of all losing rows to files in a folder. Returns the paths of these files."""
    limits = TaskLimits.of(spark, folder)

    def work(number: int) -> Iterator[str]:
        path = folder / f"{uuid.uuid4()}.parquet"
        with worker_database(limits) as database:
            database.execute(
                f"COPY ({losers_sql(rows, spec, config, tasks[number])}) TO '{_escaped(path)}' (FORMAT parquet)"
            )
        yield str(path)

    folder.mkdir(parents=True, exist_ok=True)
    return run_numbered(spark, len(tasks), work)


def losers_sql(rows: FileRows, spec: TableSpec, config: BucketConfig, keys: KeySlice) -> str:
    """A SELECT of AT, FILE and ROW of the losing rows of a slice. On a dedup table later rows lose.

    Of equal rows, which one message may bring, the first one stays, as in memory and in queries over one file.
    """
    same = ", ".join([bucket_sql(columns.TIME, config.bucket_ms), *_keys(spec)])
    hashed = _hashed(spec)
    mine = f" AND hash({', '.join(hashed)}) % {keys.count} = {keys.number}" if keys.count > 1 else ""
    mine = f"{keys.range.condition}{mine}"
    placed = rows.restricted(mine).select_placed(f"{keys.range.column} AS {AT}, {FILE}, {ROW}", rows.within(keys.range))
    order = f"{winners_first_sql(spec, identifier)}, {FILE}, {ROW}"
    return f"{placed} QUALIFY row_number() OVER (PARTITION BY {same} ORDER BY {order}) > 1"


def _keys(spec: TableSpec) -> list[str]:
    """The SQL of the values that two versions of a key share. Zeros of both signs are one value, as in Spark."""
    floats = _floats(spec)
    names = [*([columns.CONNECTOR] if spec.by_flows else []), *spec.primary_key]
    return [
        f"CASE WHEN {identifier(name)} = 0 THEN 0 ELSE {identifier(name)} END" if name in floats else identifier(name)
        for name in names
    ]


def _hashed(spec: TableSpec) -> list[str]:
    """The key columns that divide rows among tasks."""
    floats = _floats(spec)
    return [identifier(name) for name in spec.primary_key if name not in floats]


def _floats(spec: TableSpec) -> set[str]:
    return {field.name for field in spec.schema.fields if field.data_type in (DataType.FLOAT, DataType.DOUBLE)}


def _escaped(path: Path) -> str:
    return str(path).replace("'", "''")
