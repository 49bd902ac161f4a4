"""Writes the rows of a job's statement to a Parquet file, batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid.errors import DataError, MachineError, UsageError
from hybrid.query.result import QueryResult
from hybrid.runtime.disk import free_bytes, reserve_bytes

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_GROUP_ROWS, _GROUP_BYTES = 65_536, 64 * 1024 * 1024


class ParquetSpool:
    """A sink that writes a statement's rows to a Parquet file. `close` completes the file, also without rows.

    It writes a row group when it holds about `group_rows`, or very large rows.
    """

    def __init__(self, path: Path, group_rows: int = _GROUP_ROWS) -> None:
        self._path, self._group_rows = path, group_rows
        self._names: Sequence[str] = ()
        self._types: Sequence[str] = ()
        self._batches: list[pa.Table] = []
        self._writer: pq.ParquetWriter | None = None

    def begin(self, names: Sequence[str], types: Sequence[str]) -> None:
        """Starts the file, again if it was begun. UsageError when two columns have the same name."""
        twice = next((name for name in names if list(names).count(name) > 1), None)
        if twice is not None:
            raise UsageError(f"--sql: the statement gives column '{twice}' twice. Name one of them AS something else.")
        if self._writer is not None:
            self._writer.close()
        self._names, self._types, self._batches, self._writer = names, types, [], None

    def take(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Appends rows. MachineError when they would fill the disk."""
        self._batches.append(QueryResult(self._names, self._types, rows).arrow())
        count = sum(batch.num_rows for batch in self._batches)
        if count >= self._group_rows or sum(batch.nbytes for batch in self._batches) >= _GROUP_BYTES:
            self._flush()

    def close(self) -> None:
        """Completes the file."""
        if self._batches or self._writer is None:
            self._batches = self._batches or [QueryResult(self._names, self._types, ()).arrow()]
            self._flush()
        assert self._writer is not None
        self._writer.close()

    def _flush(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if free_bytes(self._path.parent) < reserve_bytes(self._path):
            raise MachineError(
                f"The rows of the statement would fill the disk of {self._path.parent}. Nothing was changed.",
                hint="Take a part of them at a time.",
            )
        if self._writer is None:
            self._writer = pq.ParquetWriter(str(self._path), self._batches[0].schema)
        try:
            table = pa.concat_tables([batch.cast(self._writer.schema) for batch in self._batches])
        except pa.ArrowInvalid as error:
            raise DataError(f"--sql: a number has more digits than a column can have: {error}") from error
        self._writer.write_table(table)
        self._batches = []
