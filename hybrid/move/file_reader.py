"""DuckDB in Spark's workers: reads the rows of a move from Parquet files without the JVM's rows (docs/adr/0047)."""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.lake.log_entries import DataFile
from hybrid.lake.parquet_paths import paths_sql
from hybrid.lake.workers import parallelism
from hybrid.move.time_ranges import TimeRange
from hybrid.runtime.disk import free_bytes, reserve_bytes
from hybrid.table.columns import TIME

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyspark.sql import SparkSession

# The memory of a worker's database, bytes. What needs more is written to a folder beside the staged files.
_MEMORY_MIN, _MEMORY_MAX = 64 << 20, 1 << 30
_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
# Names of a row's place for DuckDB's reader. A column of the files with such a name, in any case, hides the place.
PLACES = frozenset({"file_index", "file_row_number"})
# Extra columns of a placed row: the number of its file among all files of the move, and of the row in its file.
FILE, ROW = "_hy_file", "_hy_row"
_DUCKDB = {
    "string": "VARCHAR",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "decimal(38,18)": "DECIMAL(38,18)",
    "boolean": "BOOLEAN",
    "timestamp": "TIMESTAMP",
    "binary": "BLOB",
}


@dataclass(frozen=True)
class FileRows:
    """Rows in `files` for which the SQL condition `where` holds.

    `columns` are (name, Spark type) of the stored columns. `grown`: a file may lack some of them, or hold them in an
    earlier, narrower type.
    """

    files: Sequence[DataFile]
    where: str
    columns: Sequence[tuple[str, str]]
    grown: bool

    def within(self, time_range: TimeRange) -> list[DataFile]:
        """The files that may have rows in a range of time."""
        return [file for file in self.files if time_range.may_hold(file)]

    @property
    def rows_max(self) -> int:
        """The number of rows in the files, at least as many as meet the condition."""
        return sum(file.rows for file in self.files)

    def restricted(self, condition: str) -> FileRows:
        """Those of the rows for which another condition holds, too."""
        return FileRows(self.files, f"{self.where} AND ({condition})", self.columns, self.grown)

    def before(self, end_ms: int) -> FileRows:
        """Those of the rows whose time is before `end_ms`."""
        files = [file for file in self.files if file.times is None or file.times[0] < end_ms]
        return FileRows(files, f"{self.where} AND {TIME} < {end_ms}", self.columns, self.grown)

    def select(self, what: str, files: Sequence[DataFile] | None = None) -> str:
        """A SELECT of SQL terms over the rows, or over those in some of the files."""
        return f"SELECT {what} FROM {self._read(self.files if files is None else files)} WHERE {self.where}"

    def select_placed(self, what: str, files: Sequence[DataFile]) -> str:
        """The same with the columns FILE and ROW, which tell where a row is stored."""
        numbers = {file.path: number for number, file in enumerate(self.files)}
        return f"SELECT {what} FROM {self._read(files, numbers)} WHERE {self.where}"

    def _read(self, files: Sequence[DataFile], numbers: Mapping[str, int] | None = None) -> str:
        paths = [file.path for file in files]
        by_name = ", union_by_name = true" if self.grown else ""
        read = f"read_parquet([{paths_sql(paths)}], hive_partitioning = false{by_name})"
        if numbers is not None:
            # DuckDB numbers the files of this call from 0 on, the lists of SQL from 1 on.
            number = f"[{', '.join(str(numbers[path]) for path in paths)}][file_index::BIGINT + 1]"
            read = f"(SELECT *, {number} AS {FILE}, file_row_number AS {ROW} FROM {read})"
        if not self.grown:
            return read
        # A column that no file has yet gets its name and type from the empty side.
        nulls = ", ".join(f"CAST(NULL AS {_duckdb_type(kind)}) AS {identifier(name)}" for name, kind in self.columns)
        return f"(SELECT {nulls} WHERE FALSE UNION ALL BY NAME SELECT * FROM {read})"


@dataclass(frozen=True)
class TaskLimits:
    """The bytes of memory of a worker's database, and the bytes of what exceeds it, in a folder; None: in no folder."""

    memory: int = _MEMORY_MAX
    folder: Path | None = None
    spilled: int = 0

    @classmethod
    def of(cls, spark: SparkSession | None, folder: Path | None = None) -> TaskLimits:
        """A task's share of the driver's memory and, below `folder`, of half of the free space of its disk.

        Call it in the driver: it has settings. Without a session tasks are threads, as in `run_numbered`.
        """
        tasks = max(1, parallelism(spark))
        driver = spark.sparkContext.getConf().get("spark.driver.memory") if spark is not None else None
        memory = memory_of_task(driver or "", tasks)
        if folder is None:
            return cls(memory)
        return cls(memory, folder / "spill", max(0, free_bytes(folder) - reserve_bytes(folder)) // 2 // tasks)


def memory_of_task(driver: str, tasks: int) -> int:
    """The bytes of memory for one of some tasks, given the driver's memory in Spark's notation (`2g`)."""
    found = re.fullmatch(r"(\d+)([kmgt]?)b?", driver.strip().lower())
    if found is None:
        return _MEMORY_MAX
    whole = int(found[1]) * _UNITS[found[2] or "m"]
    return max(_MEMORY_MIN, min(whole // tasks, _MEMORY_MAX))


@contextmanager
def worker_database(limits: TaskLimits | None = None) -> Iterator[DuckDBPyConnection]:
    """An in-memory database of one Spark task, which has one core."""
    limits = limits or TaskLimits()
    # Of its own: DuckDB removes the folder at the end, and other tasks write then.
    spill = None if limits.folder is None else limits.folder / str(uuid.uuid4())
    if spill is None:
        with _database(limits, "") as connection:
            yield connection
        return
    spill.mkdir(parents=True)
    try:
        with _database(limits, str(spill)) as connection:
            yield connection
    finally:
        shutil.rmtree(spill, ignore_errors=True)


@contextmanager
def _database(limits: TaskLimits, spill: str) -> Iterator[DuckDBPyConnection]:
    import duckdb

    settings: dict[str, str | bool | int | float | list[str]] = {
        "threads": "1",
        "memory_limit": f"{limits.memory} B",
        "temp_directory": spill,
        "preserve_insertion_order": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "python_enable_replacements": "false",
    }
    with duckdb.connect(":memory:", config=settings) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        if spill:  # not above: DuckDB 2.0 shows it then, and does not observe it
            connection.execute(f"SET max_temp_directory_size = '{limits.spilled} B'")
        yield connection


def identifier(name: str) -> str:
    """A quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def bucket_sql(time: str, period_ms: int) -> str:
    """The start of the bucket of a time; negative times too. Null for a null."""
    return f"({time} - (({time} % {period_ms} + {period_ms}) % {period_ms}))"


def _duckdb_type(kind: str) -> str:
    """The DuckDB type for a Spark type."""
    is_list = kind.startswith("array<")
    element = _DUCKDB[kind.removeprefix("array<").removesuffix(">")]
    return f"{element}[]" if is_list else element
