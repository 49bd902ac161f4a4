"""A version of a Delta table as a source of history: local or on an object store, read in Spark's workers by delta-rs.

Spark would want a library of its own for each kind of store; delta-rs has them all, and takes the storage options that
Feldera's `delta_table_input` hands on (https://docs.feldera.com/connectors/sources/delta).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from hybrid.errors import DataError, NotFoundError, SpecError
from hybrid.flow.connectors.convert import Rows, record_worker, stage, staged_ddl
from hybrid.flow.connectors.source import PIECE, PLACE, Piece, Staged, check_columns, coordinates
from hybrid.lake.workers import map_in_arrow
from hybrid.spec.connectors import DeltaInput
from hybrid.spec.table_config import TableSpec
from hybrid.table.columns import REASON

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame, SparkSession

_BATCH_ROWS = 8192
_TASKS_PER_CORE = 2


@dataclass(frozen=True)
class _File:
    """A data file: `partition` are the columns that its path holds, `kept` says which rows are not deleted."""

    path: str
    partition: Mapping[str, object]
    kept: tuple[bool, ...] | None


class What(StrEnum):
    """What is read of a version: all its rows, those that it added, or nothing: where following begins."""

    SNAPSHOT = "snapshot"
    CHANGES = "changes"
    NOTHING = "nothing"


class DeltaSource:
    """One version of a Delta table."""

    def __init__(self, config: DeltaInput, version: int, table: DeltaTable, what: What) -> None:
        self._config, self._version, self._table_id = config, version, str(table.metadata().id)
        self._what = what
        given = (config.snapshot_filter if what is What.SNAPSHOT else None, config.filter)
        self._filters = [text for text in given if text is not None]
        self._uri, self._options = table.table_uri, dict(config.storage_options)
        self._schema = json.loads(table.schema().to_json())
        _refuse_mapping(config.uri, table)
        self._files: list[_File] = []
        self._pieces: list[Piece] = []
        if what is What.SNAPSHOT:
            self._files, self._pieces = _files_of(table)
        elif what is What.CHANGES:
            self._files, self._pieces = _added_by(config, self._uri, self._options, version)

    @property
    def pinned(self) -> Mapping[str, object]:
        """See `Source`."""
        known = {"uri": self._config.uri, "table": self._table_id, "version": self._version}
        return {**known, "what": self._what.value, "filters": self._filters}

    @property
    def is_last(self) -> bool:
        """See `Source`: a table that is followed has no end, unless the connector names one."""
        return not self._config.follows or self._version == self._config.end_version

    @property
    def pieces(self) -> Sequence[Piece]:
        """See `Source`: the files, by their paths."""
        return self._pieces

    @property
    def _columns(self) -> list[str]:
        return [str(field["name"]) for field in self._schema["fields"]]

    def check(self, spec: TableSpec, connector: str) -> None:
        """See `Source`."""
        check_columns(spec, self._columns, connector)

    def stage(self, spark: SparkSession, spec: TableSpec, connector: str, numbers: Sequence[int], to: Path) -> Staged:
        """See `Source`. Filters of the connector hold."""
        records = self._frame(spark, numbers)
        # Pieces are numbered in each version from 0: a later version's rows are newer all the same.
        epoch = self._version if self._what is What.CHANGES else 0
        worker = record_worker(Rows(spec, connector, records.columns, epoch=epoch))
        return stage(map_in_arrow(records, worker, staged_ddl(spec)), spec, connector, self._pieces, to)

    def highest_offsets(self, spark: SparkSession) -> dict[str, int] | None:
        """See `Source`: reads the three columns."""
        from pyspark.sql import functions as F

        names = coordinates(self._columns)
        if names is None:
            return None
        topic, partition, offset = names
        only = None if self._filters else {*names, REASON}  # a filter may read any column
        records = self._frame(spark, range(len(self._pieces)), only).where(F.col(offset).isNotNull())
        found = records.groupBy(topic, partition).agg(F.max(offset)).collect()
        return {f"{row[0]}/{row[1]}": int(row[2]) for row in found if row[0] is not None and row[1] is not None}

    def _frame(self, spark: SparkSession, numbers: Sequence[int], only: Collection[str] | None = None) -> DataFrame:
        """The records of some files, or `only` some of their columns, with PIECE and PLACE.

        DataError when a filter cannot be applied.
        """
        from pyspark.sql.types import IntegerType, LongType, StructType

        every = StructType.fromJson(self._schema)
        read = StructType([field for field in every if only is None or field.name in only])
        schema = read.add(PIECE, IntegerType()).add(PLACE, LongType())
        tasks = max(1, min(len(numbers), _TASKS_PER_CORE * spark.sparkContext.defaultParallelism))
        chosen = {number: self._files[number] for number in numbers}
        ids = spark.createDataFrame([(number,) for number in numbers], "number int").repartition(tasks)
        frame = ids.mapInArrow(_reader(self._uri, self._options, chosen, schema), schema)
        if REASON in self._columns:  # a half of one of our own tables: not its rejected messages
            frame = frame.where(f"{REASON} IS NULL")
        for condition in self._filters:
            frame = _filtered(frame, condition)
        return frame


def open_delta(config: DeltaInput, pinned: Mapping[str, Any] | None) -> DeltaSource:
    """The table at the version that a load has pinned, else as its connector says, else its newest version.

    NotFoundError when there is none, DataError when it cannot be read, or is not what the load began with.
    """
    first = What.SNAPSHOT if config.reads_snapshot else What.NOTHING
    version, what = (int(pinned["version"]), What(pinned["what"])) if pinned is not None else (None, first)
    source = _open(config, version, what)
    if pinned is not None and source.pinned != pinned:
        changed = ", ".join(
            f"{key}: {pinned[key]} -> {now}" for key, now in source.pinned.items() if now != pinned[key]
        )
        raise DataError(
            f"The Delta table at {config.uri} is not what the load began with ({changed}). Nothing more was loaded.",
            hint="Put it back, or load into a new table.",
        )
    return source


def open_delta_after(config: DeltaInput, pinned: Mapping[str, Any]) -> DeltaSource | None:
    """What the version after a pinned one added; None while there is none, or when the connector does not follow.

    DataError when it takes rows away, which is not built yet, or when the table is another one.
    """
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    version = int(pinned["version"]) + 1
    if not config.follows or (config.end_version is not None and version > config.end_version):
        return None
    options = dict(config.storage_options) or None
    try:
        newest = DeltaTable(config.uri, storage_options=options)
    except (DeltaError, OSError) as error:
        raise DataError(f"The Delta table at {config.uri} cannot be read: {error}") from error
    if str(newest.metadata().id) != pinned["table"]:
        raise DataError(f"The Delta table at {config.uri} is not the one that was followed. Nothing more was loaded.")
    return _open(config, version, What.CHANGES) if newest.version() >= version else None


def _added_by(
    config: DeltaInput, uri: str, options: Mapping[str, str], version: int
) -> tuple[list[_File], list[Piece]]:
    """The files that one commit added. Files of rows that were there before (OPTIMIZE) bring nothing."""
    import pyarrow.fs as pafs
    from deltalake.fs import DeltaStorageHandler

    store = pafs.PyFileSystem(DeltaStorageHandler(uri, dict(options)))
    with store.open_input_file(f"_delta_log/{version:020d}.json") as file:
        actions = [json.loads(line) for line in file.read().decode().split("\n") if line]
    if any(one["remove"].get("dataChange", True) for one in actions if "remove" in one):
        raise DataError(
            f"Version {version} of the Delta table at {config.uri} changes or deletes rows; only added ones can be "
            "followed yet. Nothing of it was loaded.",
            hint="Load what the table holds now into a new table: mode snapshot.",
        )
    added = [one["add"] for one in actions if "add" in one and one["add"].get("dataChange", True)]
    files, pieces = [], []
    for add in sorted(added, key=lambda one: str(one["path"])):
        path = unquote(str(add["path"]))
        rows = json.loads(add.get("stats") or "{}").get("numRecords")
        files.append(_File(path, dict(add.get("partitionValues") or {}), None))
        pieces.append(Piece(path, rows, int(add.get("size", 0))))
    return files, pieces


def _open(config: DeltaInput, version: int | None, what: What) -> DeltaSource:
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError, TableNotFoundError

    wanted = version if version is not None else config.version
    try:
        table = DeltaTable(config.uri, version=wanted, storage_options=dict(config.storage_options) or None)
        if wanted is None and config.datetime_ms is not None:
            table.load_as_version(datetime.fromtimestamp(config.datetime_ms / 1000, UTC))
    except TableNotFoundError as error:
        if wanted is not None and DeltaTable.is_deltatable(config.uri, dict(config.storage_options) or None):
            raise DataError(
                f"The log of the Delta table at {config.uri} does not reach back to version {wanted} any more. Nothing "
                "more was loaded.",
                hint="Load what the table holds now into a new table: mode snapshot.",
            ) from error
        raise NotFoundError(
            f"There is no Delta table at {config.uri}.",
            hint="Set another: --set /connectors/NAME/transport/config/uri=URI",
        ) from error
    except (DeltaError, OSError, ValueError) as error:
        at = "" if wanted is None else f" at version {wanted}"
        raise DataError(f"The Delta table at {config.uri} cannot be read{at}: {error}") from error
    return DeltaSource(config, table.version(), table, what)


def _refuse_mapping(uri: str, table: DeltaTable) -> None:
    mode = table.metadata().configuration.get("delta.columnMapping.mode", "none")
    if mode != "none":
        raise SpecError(
            f"The Delta table at {uri} has column mapping ('{mode}'), which is not built yet: its files do not hold "
            "the columns by their names.",
            hint="Write a copy of it without column mapping.",
        )


def _files_of(table: DeltaTable) -> tuple[list[_File], list[Piece]]:
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
        files.append(_File(path, {name: values[number] for name, values in parts.items()}, mask))
        count = rows["num_records"][number] if "num_records" in rows else None
        pieces.append(Piece(path, count, int(rows["size_bytes"][number])))
    return files, pieces


def _kept_rows(table: DeltaTable) -> dict[str, tuple[bool, ...]]:
    """By file: which rows its deletion vector leaves."""
    found: dict[str, tuple[bool, ...]] = {}
    for batch in table.deletion_vectors():
        for uri, mask in zip(batch["filepath"].to_pylist(), batch["selection_vector"].to_pylist(), strict=True):
            found[str(uri)] = tuple(mask)
    return found


def _filtered(frame: DataFrame, condition: str) -> DataFrame:
    from pyspark.errors import PySparkException

    try:
        return frame.where(condition)
    except PySparkException as error:
        raise DataError(f"The filter '{condition}' cannot be applied: {str(error).splitlines()[0]}") from error


def _reader(
    uri: str, options: Mapping[str, str], files: Mapping[int, _File], schema: Any
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark runs in its workers, on the numbers of the files."""
    from pyspark.sql.pandas.types import to_arrow_schema

    arrow = to_arrow_schema(schema, timezone="UTC", prefers_large_types=False)

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow.fs as pafs
        from deltalake.fs import DeltaStorageHandler

        store = pafs.PyFileSystem(DeltaStorageHandler(uri, dict(options)))
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _read_file(store, files[number], number, arrow)

    return read


def _read_file(store: Any, file: _File, number: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a file as the table's schema has them: a column that came later is null."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    place, stored = 0, pq.ParquetFile(store.open_input_file(file.path))
    there = [name for name in schema.names if name in stored.schema_arrow.names]
    for batch in stored.iter_batches(_BATCH_ROWS, columns=there):
        places = pa.array(range(place, place + batch.num_rows), pa.int64())
        columns = [_column(batch, file, field, number, places) for field in schema]
        found = pa.RecordBatch.from_arrays(columns, schema=schema)
        if file.kept is not None:
            found = found.filter(pa.array(file.kept[place : place + batch.num_rows]))
        place += batch.num_rows
        yield found


def _column(batch: pa.RecordBatch, file: _File, field: pa.Field, number: int, places: pa.Array) -> pa.Array:
    import pyarrow as pa

    rows = batch.num_rows
    if field.name == PLACE:
        return places
    if field.name == PIECE:
        return pa.repeat(pa.scalar(number, field.type), rows)
    if field.name in file.partition:
        value = file.partition[field.name]
        return pa.repeat(pa.scalar(value), rows).cast(field.type) if value is not None else pa.nulls(rows, field.type)
    position = batch.schema.get_field_index(field.name)
    return batch.column(position).cast(field.type) if position >= 0 else pa.nulls(rows, field.type)
