"""Writes the rows of a job's statement to a Parquet file, batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.errors import DataError, MachineError, UsageError
from hybrid.runtime.disk import free_bytes, reserve_bytes

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_GROUP_ROWS, _GROUP_BYTES = 65_536, 64 * 1024 * 1024


class ParquetSpool:
    """A sink that writes a statement's rows to a Parquet file. `close` completes the file, also without rows.

    It writes a row group when it holds about `group_rows`, or very large rows.
    """

    can_restart = True

    def __init__(self, path: Path, group_rows: int = _GROUP_ROWS) -> None:
        self._path, self._group_rows = path, group_rows
        self._schema: pa.Schema | None = None
        self._batches: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0
        self._writer: pq.ParquetWriter | None = None

    def begin(self, schema: pa.Schema, revision: str, warnings: Sequence[str]) -> None:
        """Starts the file, again if it was begun. UsageError when two columns have the same name."""
        names = schema.names
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise UsageError(f"--sql: the statement gives column '{twice}' twice. Name one of them AS something else.")
        if self._writer is not None:
            self._writer.close()
        self._schema, self._batches, self._writer = _with_stored_decimals(schema), [], None
        self._rows = self._bytes = 0

    def take(self, batch: pa.RecordBatch) -> None:
        """Appends rows. MachineError when they would fill the disk."""
        self._batches.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= self._group_rows or self._bytes >= _GROUP_BYTES:
            self._flush()

    def close(self) -> None:
        """Completes the file."""
        if self._batches or self._writer is None:
            self._flush()
        assert self._writer is not None
        self._writer.close()

    def _flush(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        assert self._schema is not None
        if free_bytes(self._path.parent) < reserve_bytes(self._path):
            raise MachineError(
                f"The rows of the statement would fill the disk of {self._path.parent}. Nothing was changed.",
                hint="Take a part of them at a time.",
            )
        if self._writer is None:
            self._writer = pq.ParquetWriter(str(self._path), self._schema)
        schema = self._batches[0].schema if self._batches else self._schema
        try:
            table = pa.Table.from_batches(self._batches, schema).cast(self._schema)
        except pa.ArrowInvalid as error:
            raise DataError(f"--sql: a number has more digits than a column can have: {error}") from error
        self._writer.write_table(table)
        self._batches, self._rows, self._bytes = [], 0, 0


def _with_stored_decimals(schema: pa.Schema) -> pa.Schema:
    """The schema with decimals as the columns of tables store them."""
    import pyarrow as pa

    stored = pa.decimal128(38, 18)
    return pa.schema([field.with_type(stored) if pa.types.is_decimal(field.type) else field for field in schema])
