"""DuckDB in Spark's workers: reads the rows of a move from Parquet files without the JVM's rows (docs/adr/0047)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.lake.log_entries import DataFile
from hybrid.move.time_ranges import TimeRange
from hybrid.runtime.disk import free_bytes, reserve_bytes
from hybrid.table.columns import TIME

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# The memory of a worker's database. What needs more is written to a folder beside the staged files.
_MEMORY = "1 GiB"
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
        read = f"read_parquet([{_texts(paths)}], hive_partitioning = false{by_name})"
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
class Spill:
    """The folder for data that exceeds the memory of a worker's database, and how many bytes it may take there."""

    folder: Path
    bytes_max: int

    @classmethod
    def below(cls, folder: Path) -> Spill:
        """A folder below `folder`, with half of the free space of its disk. Call it in the driver: it has settings."""
        return cls(folder / "spill", max(0, free_bytes(folder) - reserve_bytes(folder)) // 2)


@contextmanager
def worker_database(spill: Spill | None = None) -> Iterator[DuckDBPyConnection]:
    """An in-memory database of one Spark task, which has one core."""
    import duckdb

    settings: dict[str, str | bool | int | float | list[str]] = {
        "threads": "1",
        "memory_limit": _MEMORY,
        "temp_directory": "" if spill is None else str(spill.folder),
        "preserve_insertion_order": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "python_enable_replacements": "false",
    }
    if spill is not None:
        settings["max_temp_directory_size"] = f"{spill.bytes_max} B"
    with duckdb.connect(":memory:", config=settings) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def identifier(name: str) -> str:
    """A quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def bucket_sql(time: str, period_ms: int) -> str:
    """The start of the bucket of a time; negative times too. Null for a null."""
    return f"({time} - (({time} % {period_ms} + {period_ms}) % {period_ms}))"


def _texts(values: Sequence[str]) -> str:
    return ", ".join("'" + value.replace("'", "''") + "'" for value in values)


def _duckdb_type(kind: str) -> str:
    """The DuckDB type for a Spark type."""
    is_list = kind.startswith("array<")
    element = _DUCKDB[kind.removeprefix("array<").removesuffix(">")]
    return f"{element}[]" if is_list else element
