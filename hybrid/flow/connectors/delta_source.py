"""A version of a Delta table as a source of history, local or on an object store, read in Spark's workers by delta-rs.

Spark needs a separate library for each kind of store. delta-rs supports all of them, and takes the storage options
that Feldera's `delta_table_input` passes on (https://docs.feldera.com/connectors/sources/delta).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid.config.connector_paths import absolute_uri
from hybrid.config.connectors import ChangeFeed, DeltaInput
from hybrid.config.table_config import TableSpec
from hybrid.errors import DataError, NotFoundError, SpecError
from hybrid.flow.connectors.convert import Rows, record_worker, stage, staged_ddl, wanted_columns
from hybrid.flow.connectors.delta_changes import GONE_PIECE, TOLD, TableChanges, actions_of, changes_of, net_changes
from hybrid.flow.connectors.delta_files import DeltaFile, file_reader, files_of, holds_struct, nullable, stored_names
from hybrid.flow.connectors.source import PIECE, PLACE, SourcePiece, StagedBatch, check_columns, coordinates
from hybrid.jvm.spark_errors import spark_sentence
from hybrid.lake.workers import Worker, map_in_arrow
from hybrid.schema.secrets import redacted
from hybrid.table.columns import OP, REASON

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame, SparkSession

_TASKS_PER_CORE = 2


class What(StrEnum):
    """The part of a version to read: all rows, the changes, or nothing, where following begins."""

    SNAPSHOT = "snapshot"
    CHANGES = "changes"
    NOTHING = "nothing"


class DeltaSource:
    """One version of a Delta table."""

    def __init__(self, config: DeltaInput, version: int, table: DeltaTable, what: What) -> None:
        self._config, self._version, self._table_id = config, version, str(table.metadata().id)
        self._what = what
        filters = (config.snapshot_filter if what is What.SNAPSHOT else None, config.filter)
        self._filters = [text for text in filters if text is not None]
        self._uri, self._options = table.table_uri, config.resolved_options()
        self._schema = json.loads(table.schema().to_json())
        self._stored = _mapped_names(config.uri, table, self._schema)
        self._files: Sequence[DeltaFile] = []
        self._pieces: Sequence[SourcePiece] = []
        self._changes: TableChanges | None = None
        self._columns_before: Mapping[str, object] | None = None
        if what is What.SNAPSHOT:
            self._files, self._pieces = files_of(table)
        elif what is What.CHANGES:
            self._take(table)

    @property
    def pinned(self) -> Mapping[str, object]:
        """See `Source`."""
        base = {"uri": self._config.uri, "table": self._table_id, "version": self._version}
        return {**base, "what": self._what.value, "filters": self._filters}

    @property
    def is_last(self) -> bool:
        """See `Source`: a followed table has no end, unless the connector names one."""
        return not self._config.follows or self._version == self._config.end_version

    @property
    def pieces(self) -> Sequence[SourcePiece]:
        """See `Source`: the files, by path. A version that changes rows is one piece."""
        return self._pieces

    @property
    def _columns(self) -> list[str]:
        unread = set(self._unread)
        return [str(field["name"]) for field in self._schema["fields"] if field["name"] not in unread]

    @property
    def _unread(self) -> list[str]:
        """Columns with nested fields, whose names differ in the files."""
        fields = self._schema["fields"] if self._stored else ()
        return [str(field["name"]) for field in fields if holds_struct(field["type"])]

    def check(self, spec: TableSpec, connector: str) -> None:
        """See `Source`. DataError for changed rows when the table cannot apply such changes."""
        check_columns(spec, self._columns, connector)
        for name, _ in wanted_columns(spec, self._unread):
            raise SpecError(
                f"Column '{name}' of the Delta table at {self._config.uri} holds fields of its own, and the table has "
                "column mapping: these are not built together yet.",
                hint="Leave the column out of the table, or write a copy of the source without column mapping.",
            )
        if self._changes is not None and not spec.primary_key and self._config.change_feed is None:
            raise DataError(
                f"Version {self._version} of the Delta table at {self._config.uri} changes or deletes rows, and table "
                f"'{spec.name}' has no PRIMARY KEY that says which. Nothing of it was loaded.",
                hint='Create the table again with "change_feed": "auto" in the config of the connector: each row that '
                "went takes an equal one away then. Or load what the source holds now: mode snapshot.",
            )
        if self._changes is not None and spec.upsert is not None and spec.upsert.partial is not None:
            raise DataError(
                f"Version {self._version} of the Delta table at {self._config.uri} changes or deletes rows, and table "
                f"'{spec.name}' folds its rows (upsertConfig mode PARTIAL): a changed row would be one more to fold, "
                "not the row in the place of the old one. Nothing of it was loaded.",
                hint="Load into a table of mode FULL.",
            )
        if spec.nets_deletes and self._columns_before is not None:
            self._check_same_columns(spec, self._columns_before)

    def _check_same_columns(self, spec: TableSpec, before: Mapping[str, object]) -> None:
        """DataError when the version changes columns that the table has.

        A removed row is identified by all its values. Rows that were loaded before the change have others.
        """
        now = _types(self._schema)
        sources = [source for source, _ in wanted_columns(spec, sorted({*now, *before}))]
        other = [name for name in sources if now.get(name) != before.get(name)]
        if other:
            raise DataError(
                f"Version {self._version} of the Delta table at {self._config.uri} changes its columns "
                f"({', '.join(other)}), and table '{spec.name}' has no PRIMARY KEY: rows that go could not be told "
                "from those that were loaded before. Nothing of it was loaded.",
                hint="Load what the source holds now into a new table: mode snapshot_and_follow.",
            )

    def stage(
        self, spark: SparkSession, spec: TableSpec, connector: str, numbers: Sequence[int], to: Path
    ) -> StagedBatch:
        """See `Source`. The connector's filters apply."""
        if self._changes is not None:
            return self._stage_changes(spark, spec, connector, self._changes, to)
        records = self._frame(spark, {number: self._files[number] for number in numbers})
        # Pieces are numbered from 0 in each version, so the epoch makes rows of a later version newer.
        epoch = self._version if self._what is What.CHANGES else 0
        worker = record_worker(Rows(spec, connector, records.columns, epoch=epoch))
        return stage(map_in_arrow(records, worker, staged_ddl(spec)), spec, connector, self._pieces, to)

    def highest_offsets(self, spark: SparkSession) -> dict[str, int] | None:
        """See `Source`: reads only the three columns."""
        from pyspark.sql import functions as F

        names = coordinates(self._columns)
        if names is None:
            return None
        topic, partition, offset = names
        only = None if self._filters else {*names, REASON}  # a filter may read any column
        every = dict(enumerate(self._files))
        records = self._frame(spark, every, only).where(F.col(offset).isNotNull())
        offsets = records.groupBy(topic, partition).agg(F.max(offset)).collect()
        return {f"{row[0]}/{row[1]}": int(row[2]) for row in offsets if row[0] is not None and row[1] is not None}

    def _take(self, table: DeltaTable) -> None:
        """Takes the version's added files, one piece each; or, if it did more, its changes as one piece."""
        feed = self._config.change_feed is not ChangeFeed.OFF
        actions = actions_of(_log_entry(self._uri, self._options, self._version), feed, self._stored)
        if actions.reshapes and self._version:
            self._columns_before = _types(json.loads(_table(self._config, self._version - 1).schema().to_json()))
        if actions.only_adds:
            self._files, self._pieces = list(actions.added.values()), actions.pieces
            return
        before: Mapping[str, DeltaFile] = {}
        after: Mapping[str, DeltaFile] = {}
        if not actions.told:
            before = {file.path: file for file in files_of(_table(self._config, self._version - 1))[0]}
            after = {file.path: file for file in files_of(table)[0]}
        changes = changes_of(actions, before, after)
        if changes.are_none:
            return
        self._changes = changes
        size = actions.told_bytes if actions.told else sum(piece.bytes for piece in actions.pieces)
        self._pieces = [SourcePiece(f"version {self._version}", None, size)]

    def _stage_changes(
        self, spark: SparkSession, spec: TableSpec, connector: str, changes: TableChanges, to: Path
    ) -> StagedBatch:
        def read(files: Sequence[DeltaFile], more: str | None = None) -> DataFrame | None:
            return self._frame(spark, dict(enumerate(files)), more=more) if files else None

        table_columns = dict(wanted_columns(spec, self._columns))
        beside = {*(coordinates(self._columns) or ()), *({OP} & set(self._columns))}
        names = [name for name in self._columns if name in table_columns or name in beside]
        key = [source for source, ours in table_columns.items() if ours in spec.primary_key]
        records = net_changes(read(changes.came), read(changes.gone), read(changes.told, TOLD), names, key)
        came, gone = (
            Rows(spec, connector, records.columns, epoch=self._version, deletes=deletes) for deletes in (False, True)
        )
        frame = map_in_arrow(records, _change_worker(came, gone), staged_ddl(spec))
        at = f"version {self._version} of {self._config.uri}"
        kinds = [SourcePiece(f"a row that went in {at}", None, 0), SourcePiece(f"a row that came in {at}", None, 0)]
        return stage(frame, spec, connector, kinds, to)

    def _frame(
        self,
        spark: SparkSession,
        files: Mapping[int, DeltaFile],
        only: Collection[str] | None = None,
        more: str | None = None,
    ) -> DataFrame:
        """The records of some files, or `only` some of their columns, with PIECE and PLACE and the string `more`.

        The numbers of the files follow one another. DataError when a filter cannot be applied.
        """
        from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

        every = StructType.fromJson(nullable(self._schema))
        unread = set(self._unread)
        named = [field for field in every if (only is None or field.name in only) and field.name not in unread]
        read = StructType([StructField(field.name, field.dataType, field.nullable) for field in named])
        schema = read.add(PIECE, IntegerType()).add(PLACE, LongType())
        if more is not None:
            schema = schema.add(more, StringType())
        first = min(files, default=0)
        tasks = max(1, min(len(files), _TASKS_PER_CORE * spark.sparkContext.defaultParallelism))
        ids = spark.range(first, first + len(files), numPartitions=tasks)
        frame = ids.mapInArrow(file_reader(self._uri, self._options, files, schema, self._stored), schema)
        if REASON in self._columns:  # a half of one of our own tables: skip its rejected messages
            frame = frame.where(f"{REASON} IS NULL")
        for condition in self._filters:
            frame = _filtered(frame, condition)
        return frame


def open_delta(config: DeltaInput, pinned: Mapping[str, Any] | None) -> DeltaSource:
    """The table at the version that a load has pinned, else at the connector's version, else at its newest.

    NotFoundError when there is none. DataError when it cannot be read, or differs from what the load began with.
    """
    first = What.SNAPSHOT if config.reads_snapshot else What.NOTHING
    version, what = (int(pinned["version"]), What(pinned["what"])) if pinned is not None else (None, first)
    config = replace(config, uri=absolute_uri(config.uri))
    source = _open(config, version, what)
    before = {**pinned, "uri": absolute_uri(pinned["uri"])} if pinned is not None else source.pinned
    if source.pinned != before:
        changed = ", ".join(
            f"{key}: {before[key]} -> {now}" for key, now in source.pinned.items() if now != before[key]
        )
        raise DataError(
            f"The Delta table at {config.address} is not what the load began with ({changed}). "
            "Nothing more was loaded.",
            hint="Put it back, or load into a new table.",
        )
    return source


def open_delta_after(config: DeltaInput, pinned: Mapping[str, Any], is_counted: bool) -> DeltaSource | None:
    """The changes of the version after a pinned one; None while there is none, or when the connector does not follow.

    DataError when it is another table, or when its log cannot be read any more. Where deletes are netted
    (`is_counted`), also when the filter has changed.
    """
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    config, version = replace(config, uri=absolute_uri(config.uri)), int(pinned["version"]) + 1
    if not config.follows or (config.end_version is not None and version > config.end_version):
        return None
    if is_counted and list(pinned["filters"]) != ([config.filter] if config.filter is not None else []):
        raise DataError(
            f"The filter of the Delta table at {config.address} is another one than before ({pinned['filters']}), and "
            "rows that go are counted: those that were never loaded would take later ones away. "
            "Nothing more was loaded.",
            hint="Put the filter back, or load into a new table.",
        )
    options = config.resolved_options() or None
    try:
        newest = DeltaTable(config.uri, storage_options=options)
    except (DeltaError, OSError) as error:
        raise DataError(f"The Delta table at {config.address} cannot be read: {_told(error, config)}") from error
    if str(newest.metadata().id) != pinned["table"]:
        raise DataError(
            f"The Delta table at {config.address} is not the one that was followed. Nothing more was loaded."
        )
    return _open(config, version, What.CHANGES) if newest.version() >= version else None


def _told(error: Exception, config: DeltaInput) -> str:
    """The message of a library, without the secrets that it was given."""
    return redacted(str(error).replace(config.uri, config.address), config.resolved_options())


def _log_entry(uri: str, options: Mapping[str, str], version: int) -> str:
    """The text of a log entry."""
    import pyarrow.fs as pafs
    from deltalake.fs import DeltaStorageHandler

    store = pafs.PyFileSystem(DeltaStorageHandler(uri, dict(options)))
    with store.open_input_file(f"_delta_log/{version:020d}.json") as file:
        return str(file.read().decode())


def _open(config: DeltaInput, version: int | None, what: What) -> DeltaSource:
    table = _table(config, version)
    fed = table.metadata().configuration.get("delta.enableChangeDataFeed") or "false"
    if config.change_feed is ChangeFeed.REQUIRE and fed.lower() != "true":
        raise SpecError(
            f"The Delta table at {config.address} keeps no change data (delta.enableChangeDataFeed), which the "
            "connector requires.",
            hint='Set it there, or write "change_feed": "auto": what a version did is told by its files then.',
        )
    return DeltaSource(config, table.version(), table, what)


def _table(config: DeltaInput, version: int | None) -> DeltaTable:
    """The table at a version, else at the connector's version, else at its newest.

    NotFoundError when there is none, DataError when it cannot be read.
    """
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError, TableNotFoundError

    pinned_version = version if version is not None else config.version
    try:
        table = DeltaTable(config.uri, version=pinned_version, storage_options=config.resolved_options() or None)
        if pinned_version is None and config.datetime_ms is not None:
            table.load_as_version(datetime.fromtimestamp(config.datetime_ms / 1000, UTC))
    except TableNotFoundError as error:
        if pinned_version is not None and DeltaTable.is_deltatable(config.uri, config.resolved_options() or None):
            raise DataError(
                f"The log of the Delta table at {config.address} does not reach back to version {pinned_version} any "
                "more. Nothing more was loaded.",
                hint="Load what the table holds now into a new table: mode snapshot.",
            ) from error
        raise NotFoundError(
            f"There is no Delta table at {config.address}.",
            hint="Set another: hybrid table apply ... --set /connectors/NAME/transport/config/uri=URI",
        ) from error
    except (DeltaError, OSError, ValueError) as error:
        at = "" if pinned_version is None else f" at version {pinned_version}"
        raise DataError(f"The Delta table at {config.address} cannot be read{at}: {_told(error, config)}") from error
    return table


def _mapped_names(uri: str, table: DeltaTable, schema: Mapping[str, Any]) -> dict[str, str]:
    """For each column with another name in the files, that name."""
    mode = table.metadata().configuration.get("delta.columnMapping.mode", "none")
    if mode not in ("none", "name"):
        raise SpecError(
            f"The Delta table at {uri} has column mapping by '{mode}', which is not built yet: its files are read by "
            "names.",
            hint="Write a copy of it without column mapping, or with the mode name.",
        )
    return stored_names(schema) if mode == "name" else {}


def _types(schema: Mapping[str, Any]) -> dict[str, object]:
    return {str(field["name"]): field["type"] for field in schema["fields"]}


def _filtered(frame: DataFrame, condition: str) -> DataFrame:
    from pyspark.errors import PySparkException

    try:
        return frame.where(condition)
    except PySparkException as error:
        raise DataError(f"The filter '{condition}' cannot be applied: {spark_sentence(error)}") from error


def _change_worker(came: Rows, gone: Rows) -> Worker:
    """The function that Spark's workers run on the rows of `net_changes`."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow.compute as pc

        for batch in batches:
            went = pc.equal(batch.column(PIECE), GONE_PIECE)
            yield gone.convert(batch.filter(went))
            yield came.convert(batch.filter(pc.invert(went)))
            if came.note.problem is not None or gone.note.problem is not None:
                break
        yield gone.told()
        yield came.told()

    return run
