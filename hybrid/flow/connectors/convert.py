"""Records of history to stored rows of the OFFLINE half, by the table's one decoder, in Spark's workers.

Each task leaves a note beside its rows: how many, how far Kafka's offsets reach, or the first record that is no row of
the table. The driver reads them, so a wrong record is named exactly and before anything is committed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid.errors import DataError
from hybrid.flow.connectors.source import PIECE, PLACE, Piece, Source, coordinates
from hybrid.lake.create import arrow_schema
from hybrid.lake.layout import physical_columns
from hybrid.spec.table_config import Half, TableSpec
from hybrid.table import columns
from hybrid.table.decode import Decoder
from hybrid.table.outcome import Decoded, Rejected

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

NOTE = f"{columns.PREFIX}note"
# History is older than whatever a stream brings; Kafka's own "no timestamp" is -1.
HISTORY_TIMESTAMP = -2
HISTORY_TOPIC = "history"
_ROWS_PER_PIECE_BITS = 40
_UNNAMED = ""


@dataclass
class _Note:
    rows: int = 0
    offsets: dict[str, int] = field(default_factory=dict)
    problem: tuple[int, int, str] | None = None


@dataclass(frozen=True)
class Converted:
    """What was staged: stored rows without names of segments; `offsets` are Kafka's highest, by `topic/partition`."""

    frame: DataFrame
    rows: int
    offsets: dict[str, int]


def convert(records: DataFrame, spec: TableSpec, connector: str, pieces: Sequence[Piece], folder: Path) -> Converted:
    """Stages the rows of `records` in `folder`. DataError at the first record that is no row of the table."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    names = [*physical_columns(spec, Half.OFFLINE), (NOTE, "string")]
    ddl = ", ".join(f"`{name}` {kind}" for name, kind in names)
    spark = records.sparkSession
    try:
        records.mapInArrow(_worker(spec, connector, list(records.columns)), ddl).write.parquet(str(folder))
    except (PySparkException, Py4JError) as error:
        raise DataError(
            f"Connector '{connector}' of table '{spec.name}': the source cannot be read: {_last_words(error)}"
        ) from error
    staged = spark.read.schema(ddl).parquet(str(folder))
    notes = [_Note(**json.loads(row[0])) for row in staged.where(f"{NOTE} IS NOT NULL").select(NOTE).collect()]
    _refuse_problems(spec, connector, pieces, notes)
    offsets: dict[str, int] = {}
    for note in notes:
        _raise_to(offsets, note.offsets)
    return Converted(staged.where(f"{NOTE} IS NULL").drop(NOTE), sum(note.rows for note in notes), offsets)


def _last_words(error: Exception) -> str:
    """What a traceback of a worker ends with."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"[A-Za-z_.]+(Error|Exception)\b.*:", line)]
    return (named or lines or [type(error).__name__])[-1]


def highest_offsets(spark: SparkSession, source: Source) -> dict[str, int] | None:
    """Kafka's highest offsets in a source, by `topic/partition`, without loading it; None where it tells none."""
    from pyspark.sql import functions as F

    names = coordinates(source.columns)
    if names is None:
        return None
    topic, partition, offset = names
    records = source.frame(spark, range(len(source.pieces)), names)
    found = records.where(F.col(offset).isNotNull()).groupBy(topic, partition).agg(F.max(offset)).collect()
    return {f"{row[0]}/{row[1]}": int(row[2]) for row in found if row[0] is not None and row[1] is not None}


def _refuse_problems(spec: TableSpec, connector: str, pieces: Sequence[Piece], notes: Iterable[_Note]) -> None:
    problems = sorted((*note.problem,) for note in notes if note.problem is not None)
    if not problems:
        return
    piece, place, reason = problems[0]
    raise DataError(
        f"Connector '{connector}' of table '{spec.name}': {pieces[piece].name}, row {place + 1}: {reason} "
        "Nothing of this file was loaded.",
        hint=f"Correct the source or the table, then: hybrid connector start {spec.name} {connector}",
    )


def _worker(
    spec: TableSpec, connector: str, names: Sequence[str]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark runs in its workers."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = _Rows(spec, connector, names)
        for batch in batches:
            yield rows.convert(batch)
            if rows.note.problem is not None:
                break
        yield rows.told()

    return run


class _Rows:
    """Records to stored rows, for one worker."""

    def __init__(self, spec: TableSpec, connector: str, names: Sequence[str]) -> None:
        import pyarrow as pa

        self.note = _Note()
        self._decoder = Decoder(spec, Half.OFFLINE)
        self._schema = arrow_schema(spec, Half.OFFLINE).append(pa.field(NOTE, pa.string()))
        self._connector = connector
        self._wanted = _wanted(spec, names)
        self._coordinates = coordinates(names)

    def convert(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch, up to the first that is none."""
        pieces, places = batch.column(PIECE).to_pylist(), batch.column(PLACE).to_pylist()
        named = {name: batch.column(source).to_pylist() for source, name in self._wanted}
        keys = list(named)
        rows: list[tuple[object, ...]] = []
        records = zip(*named.values(), strict=True) if named else ((),) * batch.num_rows
        for piece, place, values in zip(pieces, places, records, strict=True):
            found = self._decoder.convert(dict(zip(keys, values, strict=True)))
            if isinstance(found, Decoded):
                rows.append(self._row(found, (piece << _ROWS_PER_PIECE_BITS) + place))
            elif isinstance(found, Rejected):
                self.note.problem = (piece, place, found.reason)
                break
        self.note.rows += len(rows)
        self._note_offsets(batch)
        return self._batch(rows)

    def told(self) -> pa.RecordBatch:
        """The note, as a row of its own."""
        return self._batch([(*(None,) * (len(self._schema) - 1), json.dumps(vars(self.note)))])

    def _row(self, found: Decoded, number: int) -> tuple[object, ...]:
        op = columns.OP_DELETE if found.is_delete else columns.OP_ROW
        hidden = (_UNNAMED, self._connector, HISTORY_TOPIC, 0, 0, number, HISTORY_TIMESTAMP, op, found.time_ms)
        return (*hidden, *found.values, None)

    def _batch(self, rows: Sequence[tuple[object, ...]]) -> pa.RecordBatch:
        import pyarrow as pa

        lists: Any = zip(*rows, strict=True) if rows else ([] for _ in self._schema)
        arrays = [pa.array(list(values), one.type) for values, one in zip(lists, self._schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _note_offsets(self, batch: pa.RecordBatch) -> None:
        if self._coordinates is None:
            return
        topics, partitions, offsets = (batch.column(name).to_pylist() for name in self._coordinates)
        for topic, partition, offset in zip(topics, partitions, offsets, strict=True):
            if topic is not None and partition is not None and offset is not None:
                _raise_to(self.note.offsets, {f"{topic}/{partition}": int(offset)})


def _wanted(spec: TableSpec, names: Sequence[str]) -> list[tuple[str, str]]:
    """(the source's name, ours) of each column that the table takes."""
    ours = {name.lower(): name for name in spec.schema.column_names} if spec.ignores_case else {}
    found = [(name, ours.get(name.lower(), name)) for name in names]
    return [(source, name) for source, name in found if spec.schema.find(name) is not None]


def _raise_to(known: dict[str, int], others: dict[str, int]) -> None:
    for key, offset in others.items():
        known[key] = max(offset, known.get(key, offset))
