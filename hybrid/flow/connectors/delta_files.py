"""The data files of a Delta table, and reading their rows in Spark's workers by delta-rs and pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from hybrid.files.parquetfile import INT96_UNIT
from hybrid.flow.connectors.source import PIECE, PLACE, SourcePiece

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

_BATCH_ROWS = 8192
_PHYSICAL = "delta.columnMapping.physicalName"


@dataclass(frozen=True)
class DeltaFile:
    """A data file: `partition` are the columns that its path holds, by the table's names for them; `kept` says which of
    its rows are read.

    `beyond` holds for the rows that `kept` does not reach; None: all rows are read.
    """

    path: str
    partition: Mapping[str, object]
    kept: tuple[bool, ...] | None = None
    beyond: bool = True

    def keeps(self, first: int, count: int) -> list[bool]:
        """Which of some of its rows are read; `kept` is there."""
        assert self.kept is not None
        found = list(self.kept[first : first + count])
        return found + [self.beyond] * (count - len(found))


def files_of(table: DeltaTable) -> tuple[list[DeltaFile], list[SourcePiece]]:
    """The data files in the order of their paths."""
    batch = table.get_add_actions(flatten=True)
    rows = {str(name): batch.column(name).to_pylist() for name in batch.schema.names}
    kept = _kept_rows(table)
    parts = {name.removeprefix("partition."): values for name, values in rows.items() if name.startswith("partition.")}
    order = sorted(range(len(rows["path"])), key=lambda number: str(rows["path"][number]))
    files, pieces = [], []
    for number in order:
        path = unquote(str(rows["path"][number]))
        mask = next((mask for uri, mask in kept.items() if unquote(uri).endswith(path)), None)
        files.append(DeltaFile(path, {name: values[number] for name, values in parts.items()}, mask))
        count = rows["num_records"][number] if "num_records" in rows else None
        pieces.append(SourcePiece(path, count, int(rows["size_bytes"][number])))
    return files, pieces


def _kept_rows(table: DeltaTable) -> dict[str, tuple[bool, ...]]:
    """By file: which rows its deletion vector leaves."""
    found: dict[str, tuple[bool, ...]] = {}
    for batch in table.deletion_vectors():
        for uri, mask in zip(batch["filepath"].to_pylist(), batch["selection_vector"].to_pylist(), strict=True):
            found[str(uri)] = tuple(mask)
    return found


def stored_names(schema: Mapping[str, Any]) -> dict[str, str]:
    """By column: the name that it has in the files, where that is another one (column mapping by name)."""
    named = {str(one["name"]): one.get("metadata", {}).get(_PHYSICAL) for one in schema["fields"]}
    return {name: str(stored) for name, stored in named.items() if stored is not None}


def holds_struct(kind: object) -> bool:
    """Whether a type, as a schema's JSON says it, has fields of its own."""
    if not isinstance(kind, Mapping):
        return False
    parts = (kind.get(name) for name in ("elementType", "keyType", "valueType"))
    return kind.get("type") == "struct" or any(map(holds_struct, parts))


def file_reader(
    uri: str, options: Mapping[str, str], files: Mapping[int, DeltaFile], schema: Any, stored: Mapping[str, str]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark runs in its workers, on the numbers of the files; `stored` is of `stored_names`."""
    from pyspark.sql.pandas.types import to_arrow_schema

    arrow = to_arrow_schema(schema, timezone="UTC", prefers_large_types=False)

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow.fs as pafs
        from deltalake.fs import DeltaStorageHandler

        store = pafs.PyFileSystem(DeltaStorageHandler(uri, dict(options)))
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _read_file(store, files[number], number, arrow, stored)

    return read


def _read_file(
    store: Any, file: DeltaFile, number: int, schema: pa.Schema, stored: Mapping[str, str]
) -> Iterator[pa.RecordBatch]:
    """The rows of a file as the table's schema has them: a column that came later is null."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    opened = pq.ParquetFile(store.open_input_file(file.path), coerce_int96_timestamp_unit=INT96_UNIT)
    place = 0
    names = [stored.get(name, name) for name in schema.names]
    there = [name for name in names if name in opened.schema_arrow.names]
    for batch in opened.iter_batches(_BATCH_ROWS, columns=there):
        places = pa.array(range(place, place + batch.num_rows), pa.int64())
        columns = [_column(batch, file, field, name, number, places) for field, name in zip(schema, names, strict=True)]
        found = pa.RecordBatch.from_arrays(columns, schema=schema)
        if file.kept is not None:
            found = found.filter(pa.array(file.keeps(place, batch.num_rows), pa.bool_()))
        place += batch.num_rows
        yield found


def _column(
    batch: pa.RecordBatch, file: DeltaFile, field: pa.Field, stored: str, number: int, places: pa.Array
) -> pa.Array:
    """A column of a batch, which is called `stored` there."""
    import pyarrow as pa

    rows = batch.num_rows
    if field.name == PLACE:
        return places
    if field.name == PIECE:
        return pa.repeat(pa.scalar(number, field.type), rows)
    if field.name in file.partition:
        value = file.partition[field.name]
        if value is None:
            return pa.nulls(rows, field.type)
        if isinstance(value, str) and pa.types.is_timestamp(field.type) and field.type.tz and not value.endswith("Z"):
            value += "Z"  # the log writes instants in UTC, and may leave the zone out
        return pa.repeat(pa.scalar(value), rows).cast(field.type)
    position = batch.schema.get_field_index(stored)
    return batch.column(position).cast(field.type) if position >= 0 else pa.nulls(rows, field.type)
