"""Converts records of history to stored rows of the OFFLINE half, by the table's decoder, in Spark's workers.

Each task writes a note beside its rows: their number, Kafka's highest offsets, or the first record that is no row of
the table. The driver reads the notes, so an error names the exact record and is raised before any commit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid.config.table_config import Half, MessageFormat, TableSpec
from hybrid.errors import DataError
from hybrid.flow.connectors.columnar import Columnar
from hybrid.flow.connectors.source import PIECE, PLACE, SourcePiece, StagedBatch, coordinates, raise_to
from hybrid.jvm.spark_errors import spark_sentence
from hybrid.lake.create import arrow_schema
from hybrid.lake.layout import ddl_of, physical_columns
from hybrid.lake.spark_paths import literal_paths
from hybrid.lake.workers import Worker
from hybrid.records.decode import Decoder
from hybrid.records.outcome import Decoded, Filtered, Outcome, Rejected
from hybrid.runtime.arrow_rows import first_bad_value, values_of
from hybrid.table import columns

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

NOTE = f"{columns.PREFIX}note"
# History is older than all rows of a stream; Kafka's own "no timestamp" is -1.
HISTORY_TIMESTAMP = -2
HISTORY_TOPIC = "history"
_ROWS_PER_PIECE_BITS = 40
_BATCH_ROWS = 4096
_UNNAMED = ""
_MARKER = "it is a delete marker of a table of ours. Load what that table shows: write a query's answer to a file"
_NOT_BUILT: Mapping[type[Any], str] = {
    Decoded: "a delete needs a PRIMARY KEY that says which row it means; without one only a table whose Kafka stream "
    "brings deletes takes an equal row away. Give the table a PRIMARY KEY, or leave the deletes out",
    Filtered: "the table's filter drops it, which is not built for history yet",
}


@dataclass
class _RejectNote:
    """The note of a task. `problem` is (piece, place, where in the piece, why); `deletes` are among the rows."""

    rows: int = 0
    deletes: int = 0
    offsets: dict[str, int] = field(default_factory=dict)
    problem: tuple[int, int, str, str] | None = None


def staged_ddl(spec: TableSpec) -> str:
    """The columns of staged rows, as Spark DDL."""
    return ddl_of([*physical_columns(spec, Half.OFFLINE), (NOTE, "string")])


def stage(rows: DataFrame, spec: TableSpec, connector: str, pieces: Sequence[SourcePiece], folder: Path) -> StagedBatch:
    """Stages the result of `Rows` in `folder`. DataError at the first record that is no row of the table."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        rows.write.parquet(str(folder))
    except (PySparkException, Py4JError) as error:
        raise DataError(
            f"Connector '{connector}' of table '{spec.name}': the source cannot be read: {spark_sentence(error)}"
        ) from error
    staged = rows.sparkSession.read.schema(staged_ddl(spec)).parquet(*literal_paths([str(folder)]))
    notes = _notes(folder)
    _refuse_problems(spec, connector, pieces, notes)
    offsets: dict[str, int] = {}
    for note in notes:
        raise_to(offsets, note.offsets)
    counts = sum(note.rows for note in notes), sum(note.deletes for note in notes)
    return StagedBatch(staged.where(f"{NOTE} IS NULL").drop(NOTE), *counts, offsets)


def _notes(folder: Path) -> list[_RejectNote]:
    """The notes of all tasks. A query of Spark takes longer than to stage few rows."""
    import pyarrow.parquet as pq

    notes: list[_RejectNote] = []
    for path in folder.glob("*.parquet"):
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(columns=[NOTE]):
                notes += [_RejectNote(**json.loads(text)) for text in batch.column(0).drop_null().to_pylist()]
    return notes


def _refuse_problems(
    spec: TableSpec, connector: str, pieces: Sequence[SourcePiece], notes: Iterable[_RejectNote]
) -> None:
    problems = sorted((*note.problem,) for note in notes if note.problem is not None)
    if not problems:
        return
    piece, _, where, reason = problems[0]
    raise DataError(
        f"Connector '{connector}' of table '{spec.name}': {pieces[piece].name}{where}: {reason.rstrip('.')}. "
        "Nothing of this file was loaded.",
        hint=f"Correct the source or the table, then: hybrid connector start {spec.name} {connector}",
    )


class Rows:
    """Converts records to stored rows, in one worker. `names` are the source's columns, if all records have the same.

    `message` says whether a record is a row or a change that holds one. With `deletes`, each record is a deleted row.
    Of two rows of one key, the one of the higher `epoch` is newer.
    """

    def __init__(
        self,
        spec: TableSpec,
        connector: str,
        names: Sequence[str] = (),
        message: MessageFormat = MessageFormat.RECORD,
        epoch: int = 0,
        *,
        deletes: bool = False,
    ) -> None:
        self._spec, self._connector, self._names, self._message = spec, connector, list(names), message
        self._epoch, self._deletes = epoch, deletes
        self.note = _RejectNote()
        self._decoder = Decoder(spec, Half.OFFLINE, MessageFormat.CHANGE if deletes else message)
        self._coordinates = coordinates(names)
        self._wanted = wanted_columns(spec, names)
        read = {*(self._coordinates or ()), columns.OP, *(source for source, _ in self._wanted)}
        self._read = [name for name in names if name in read]
        self._columnar = Columnar(spec, {name: source for source, name in self._wanted})

    def __reduce__(self) -> tuple[Callable[..., Rows], tuple[TableSpec, str, list[str], MessageFormat, int]]:
        make = partial(Rows, deletes=self._deletes)
        return make, (self._spec, self._connector, self._names, self._message, self._epoch)

    def convert(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch of records, up to the first record that is no row."""
        bad = first_bad_value(batch.select(self._read))
        rows = self._converted(batch if bad is None else batch.slice(0, bad.row))
        if bad is not None and self.note.problem is None:
            piece, place = (int(batch.column(name)[bad.row].as_py()) for name in (PIECE, PLACE))
            self.note.problem = (piece, place, f", row {place + 1}", f"column '{bad.column}' {bad.reason}")
        return rows

    def _converted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        dead = self._dead(batch)
        plain = self._columnar.convert(batch) if dead is None and not self._deletes else None
        if plain is not None:
            self.note.rows += batch.num_rows
            self._note_offsets(batch)
            return self._laid(batch, *plain)
        pieces, places = batch.column(PIECE).to_pylist(), batch.column(PLACE).to_pylist()
        named = {name: values_of(batch.column(source)) for source, name in self._wanted}
        keys, rows = list(named), []
        records = zip(*named.values(), strict=True) if named else ((),) * batch.num_rows
        for at, (piece, place, values) in enumerate(zip(pieces, places, records, strict=True)):
            if at == dead:
                self.note.problem = (piece, place, f", row {place + 1}", _MARKER)
                break
            record: Mapping[str, object] = dict(zip(keys, values, strict=True))
            row = self.take({"delete": record} if self._deletes else record, piece, place, f", row {place + 1}")
            if row is None:
                break
            rows.append(row)
        self._note_offsets(batch)
        return self.batch(rows)

    def take(
        self, record: Mapping[str, object], piece: int, place: int, where: str, changed_ms: int | None = None
    ) -> tuple[object, ...] | None:
        """The stored row of a record; None, and a note, when it is no row. `where` continues the name of its piece.

        `changed_ms` is the time of a delete that has none of its own.
        """
        outcome: Outcome = self._decoder.convert(record, changed_ms)
        may_delete = bool(self._spec.primary_key) or self._spec.nets_deletes
        if isinstance(outcome, Decoded) and (may_delete or not outcome.is_delete):
            self.note.rows += 1
            self.note.deletes += outcome.is_delete
            return self._row(outcome, (piece << _ROWS_PER_PIECE_BITS) + place)
        reason = outcome.reason if isinstance(outcome, Rejected) else _NOT_BUILT[type(outcome)]
        self.note.problem = (piece, place, where, reason)
        return None

    def batches(self, taken: Iterable[tuple[object, ...] | None]) -> Iterator[pa.RecordBatch]:
        """The results of `take` in batches, up to the first record that was no row."""
        rows: list[tuple[object, ...]] = []
        for row in taken:
            if row is None:
                break
            rows.append(row)
            if len(rows) == _BATCH_ROWS:
                yield self.batch(rows)
                rows = []
        yield self.batch(rows)

    def _dead(self, batch: pa.RecordBatch) -> int | None:
        """The first delete marker among records of one of our own tables."""
        if columns.OP not in self._names:
            return None
        marks = batch.column(columns.OP).to_pylist()
        return marks.index(columns.OP_DELETE) if columns.OP_DELETE in marks else None

    def told(self) -> pa.RecordBatch:
        """The note, as a row."""
        return self.batch([(*(None,) * len(physical_columns(self._spec, Half.OFFLINE)), json.dumps(vars(self.note)))])

    def batch(self, rows: Sequence[tuple[object, ...]]) -> pa.RecordBatch:
        """Stored rows as an Arrow batch."""
        import pyarrow as pa

        schema = self._schema()
        lists: Any = zip(*rows, strict=True) if rows else ([] for _ in schema)
        arrays = [pa.array(list(values), field.type) for values, field in zip(lists, schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _laid(self, batch: pa.RecordBatch, user: list[pa.Array], times: pa.Array) -> pa.RecordBatch:
        """Stored rows from stored columns."""
        import pyarrow as pa
        import pyarrow.compute as pc

        schema, rows = self._schema(), batch.num_rows
        pieces = batch.column(PIECE).cast(pa.int64())
        numbers = pc.add(pc.shift_left(pieces, _ROWS_PER_PIECE_BITS), batch.column(PLACE))
        shared = (_UNNAMED, self._connector, HISTORY_TOPIC, self._epoch, 0, None, HISTORY_TIMESTAMP, columns.OP_ROW)
        hidden = [pa.repeat(pa.scalar(value, schema.field(at).type), rows) for at, value in enumerate(shared)]
        hidden[shared.index(None)] = numbers
        return pa.RecordBatch.from_arrays([*hidden, times, *user, pa.nulls(rows, pa.string())], schema=schema)

    def _schema(self) -> pa.Schema:
        import pyarrow as pa

        return arrow_schema(self._spec, Half.OFFLINE).append(pa.field(NOTE, pa.string()))

    def _row(self, found: Decoded, number: int) -> tuple[object, ...]:
        op = columns.OP_DELETE if found.is_delete else columns.OP_ROW
        arrived = (self._connector, HISTORY_TOPIC, self._epoch, 0, number, HISTORY_TIMESTAMP)
        hidden = (_UNNAMED, *arrived, op, found.time_ms)
        return (*hidden, *found.values, None)

    def _note_offsets(self, batch: pa.RecordBatch) -> None:
        if self._coordinates is None:
            return
        import pyarrow as pa

        topic, partition, offset = self._coordinates
        places = pa.table({name: batch.column(name) for name in self._coordinates}).drop_null()
        for row in places.group_by([topic, partition]).aggregate([(offset, "max")]).to_pylist():
            raise_to(self.note.offsets, {f"{row[topic]}/{row[partition]}": int(row[f"{offset}_max"])})


def record_worker(rows: Rows) -> Worker:
    """The function that Spark's workers run on records as columns."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield rows.convert(batch)
            if rows.note.problem is not None:
                break
        yield rows.told()

    return run


def wanted_columns(spec: TableSpec, names: Sequence[str]) -> list[tuple[str, str]]:
    """(the source's name, ours) of each source column that the table has."""
    ours = {name.lower(): name for name in spec.schema.column_names} if spec.ignores_case else {}
    pairs = [(name, ours.get(name.lower(), name)) for name in names]
    return [(source, name) for source, name in pairs if spec.schema.find(name) is not None]
