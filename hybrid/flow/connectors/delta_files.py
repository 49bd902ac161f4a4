"""The data files of a Delta table, read in Spark's workers by delta-rs and pyarrow."""

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
    """A data file. `partition` holds the columns in its path, by the table's names; `kept` flags the rows to read.

    `beyond` is the flag of rows after the end of `kept`. None: all rows are read.
    """

    path: str
    partition: Mapping[str, object]
    kept: tuple[bool, ...] | None = None
    beyond: bool = True

    def keeps(self, first: int, count: int) -> list[bool]:
        """The flags of some of its rows; `kept` must be set."""
        assert self.kept is not None
        flags = list(self.kept[first : first + count])
        return flags + [self.beyond] * (count - len(flags))


def files_of(table: DeltaTable) -> tuple[list[DeltaFile], list[SourcePiece]]:
    """The data files, sorted by path."""
    batch = table.get_add_actions(flatten=True)
    rows = {str(name): batch.column(name).to_pylist() for name in batch.schema.names}
    masks = _kept_rows(table)
    parts = {name.removeprefix("partition."): values for name, values in rows.items() if name.startswith("partition.")}
    order = sorted(range(len(rows["path"])), key=lambda number: str(rows["path"][number]))
    files, pieces = [], []
    for number in order:
        path = unquote(str(rows["path"][number]))
        mask = next((mask for uri, mask in masks.items() if unquote(uri).endswith(path)), None)
        files.append(DeltaFile(path, {name: values[number] for name, values in parts.items()}, mask))
        count = rows["num_records"][number] if "num_records" in rows else None
        pieces.append(SourcePiece(path, count, int(rows["size_bytes"][number])))
    return files, pieces


def _kept_rows(table: DeltaTable) -> dict[str, tuple[bool, ...]]:
    """For each file, a flag for each row: whether its deletion vector keeps it."""
    masks: dict[str, tuple[bool, ...]] = {}
    for batch in table.deletion_vectors():
        for uri, mask in zip(batch["filepath"].to_pylist(), batch["selection_vector"].to_pylist(), strict=True):
            masks[str(uri)] = tuple(mask)
    return masks


def stored_names(schema: Mapping[str, Any]) -> dict[str, str]:
    """For each column with another name in the files (column mapping by name), that name."""
    named = {str(field["name"]): field.get("metadata", {}).get(_PHYSICAL) for field in schema["fields"]}
    return {name: str(stored) for name, stored in named.items() if stored is not None}


def nullable(kind: Any) -> Any:
    """A type in a schema's JSON in which every field, element and value may be null.

    What a table says of its rows does not bind who wrote its files: the decoder judges each row, and names it.
    """
    if not isinstance(kind, Mapping):
        return kind
    changed = {"nullable": True, "containsNull": True, "valueContainsNull": True}
    changed = {name: value for name, value in changed.items() if name in kind}
    inner = {name: nullable(kind[name]) for name in ("type", "elementType", "keyType", "valueType") if name in kind}
    if "fields" in kind:
        inner["fields"] = [nullable(field) for field in kind["fields"]]
    return {**kind, **inner, **changed}


def holds_struct(kind: object) -> bool:
    """Whether a type in a schema's JSON has fields of its own."""
    if not isinstance(kind, Mapping):
        return False
    parts = (kind.get(name) for name in ("elementType", "keyType", "valueType"))
    return kind.get("type") == "struct" or any(map(holds_struct, parts))


def file_reader(
    uri: str, options: Mapping[str, str], files: Mapping[int, DeltaFile], schema: Any, stored: Mapping[str, str]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark's workers run on the numbers of the files; `stored` is from `stored_names`."""
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
    """The rows of a file in the table's schema. Columns that were added later are null."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    opened = pq.ParquetFile(store.open_input_file(file.path), coerce_int96_timestamp_unit=INT96_UNIT)
    place = 0
    names = [stored.get(name, name) for name in schema.names]
    there = [name for name in names if name in opened.schema_arrow.names]
    for batch in opened.iter_batches(_BATCH_ROWS, columns=there):
        places = pa.array(range(place, place + batch.num_rows), pa.int64())
        columns = [_column(batch, file, field, name, number, places) for field, name in zip(schema, names, strict=True)]
        rows = pa.RecordBatch.from_arrays(columns, schema=schema)
        if file.kept is not None:
            rows = rows.filter(pa.array(file.keeps(place, batch.num_rows), pa.bool_()))
        place += batch.num_rows
        yield rows


def _column(
    batch: pa.RecordBatch, file: DeltaFile, field: pa.Field, stored: str, number: int, places: pa.Array
) -> pa.Array:
    """A column of a batch, where its name is `stored`."""
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
            value += "Z"  # the log writes instants in UTC, and may omit the zone
        return pa.repeat(pa.scalar(value), rows).cast(field.type)
    position = batch.schema.get_field_index(stored)
    return batch.column(position).cast(field.type) if position >= 0 else pa.nulls(rows, field.type)
