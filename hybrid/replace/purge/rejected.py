"""Which rejected messages a purge removes: messages that match as far as they can be read.

A rejected message is no row of the table, so the condition cannot simply be evaluated. Every object in it is read
column by column; where one matches, the message is removed. An object is undecided when a column of the condition is
missing or does not fit, or when nothing can be read. Then the bytes decide: a message is removed that contains, as a
word, a constant that the condition compares for equality. Messages that remain undecided stay, unless the request
includes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hybrid.config.json_flavor import JsonFlavor
from hybrid.config.table_config import Half, TableSpec
from hybrid.errors import DataError
from hybrid.lake.exact_decimals import with_exact_decimals
from hybrid.lake.layout import ddl_of, quoted
from hybrid.records.decode import Decoder
from hybrid.records.fields import Field, fields_of
from hybrid.records.messages import unpack
from hybrid.records.outcome import Filtered, Rejected
from hybrid.replace.purge.request import PurgeScope
from hybrid.replace.purge.scan import digest
from hybrid.schema.jsontext import parse_json
from hybrid.table import columns

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_DEPTH_MAX = 4
_TOLD, _NAMED = "_hy_told", "_hy_named"
_UNFIT = (ValueError, ArithmeticError, TypeError, LookupError, RecursionError, DataError)
# The values of an object that fit, and whether they are all that the condition reads; None: it has none of them.
Row = tuple[dict[str, Any], bool | None]
# For what cannot be read: it may hold anything, whatever other objects of the message hold.
_UNREAD: Row = ({}, False)


def condemned(scene: PurgeScope, rows: DataFrame) -> DataFrame:
    """(raw, goes, undecided) of each rejected message: its digest, whether it is removed, whether it is undecided."""
    from pyspark.sql import functions as F

    own = [("raw", "string"), (_TOLD, "boolean"), (_NAMED, "boolean")]
    ddl = ddl_of([*own, *((field.name, field.spark_type) for field in scene.table.spec.schema.fields)])
    messages = rows.where(quoted(columns.RAW).isNotNull()).select(
        digest().alias("raw"), quoted(columns.RAW).alias("value"), quoted(columns.TIMESTAMP).alias("at")
    )
    read = messages.mapInArrow(_worker(scene.table.spec, scene.asked.reads, scene.asked.values), ddl)
    # A missing column is not null: only an object with all columns of the condition can match.
    matches = F.coalesce(F.expr(scene.asked.where), F.lit(False)) & F.coalesce(F.col(_TOLD), F.lit(False))
    by_message = with_exact_decimals(
        read,
        lambda exact: exact.groupBy("raw").agg(
            F.max(matches).alias("matches"), F.min(_TOLD).alias("told"), F.max(_NAMED).alias("named")
        ),
    )
    undecided = "NOT coalesce(told, FALSE)"
    goes = "TRUE" if scene.asked.undecided else "named"
    return by_message.withColumn("goes", F.expr(f"matches OR ({undecided} AND {goes})")).select(
        "raw", "goes", F.expr(f"NOT goes AND {undecided}").alias("undecided")
    )


def _worker(
    spec: TableSpec, reads: tuple[str, ...], values: tuple[str, ...]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = MessageReader(spec, reads, values)
        for batch in batches:
            yield _read_batch(batch, spec, reader)

    return read


def _read_batch(batch: pa.RecordBatch, spec: TableSpec, reader: MessageReader) -> pa.RecordBatch:
    import pyarrow as pa

    from hybrid.lake.create import record_batch

    fields = [pa.field("raw", pa.string()), pa.field(_TOLD, pa.bool_()), pa.field(_NAMED, pa.bool_())]
    schema = pa.schema(fields + [pa.field(field.name, field.arrow_type()) for field in spec.schema.fields])
    names = spec.schema.column_names
    rows: list[tuple[object, ...]] = []
    for raw, value, now_ms in zip(*(column.to_pylist() for column in batch.columns), strict=True):
        named = reader.names(value)
        for record, is_full in reader.records(value, now_ms):
            rows.append((raw, is_full, named, *(record.get(name) for name in names)))
    return record_batch(schema, rows)


class MessageReader:
    """Reads what can be read of messages that are no rows: the values that fit of the columns `reads`."""

    def __init__(self, spec: TableSpec, reads: tuple[str, ...], values: tuple[str, ...]) -> None:
        flavor = spec.stream.flavor if spec.stream is not None else JsonFlavor.DEFAULT
        self._fields = [field for field in fields_of(spec, flavor) if field.name in reads]
        self._decoder = Decoder(spec, Half.REALTIME)
        words = "|".join(map(re.escape, values))
        self._words = re.compile(rf"(?<![\w@.-])(?:{words})(?![\w@-]|\.\w)".encode()) if words else None

    def names(self, payload: bytes) -> bool:
        """Whether the bytes contain one of the values as a word."""
        return self._words is not None and self._words.search(payload) is not None

    def records(self, payload: bytes, now_ms: int | None) -> list[Row]:
        """The readable values of each object in a message, at least one. An unreadable part has none."""
        message = unpack(payload)
        if not self._decoder.is_of_json or message.key is not None or message.headers:
            documents = self._decoder.documents(message.value, message)
            return [_UNREAD if isinstance(item, Rejected) else self._row(item, now_ms) for item in documents]
        try:
            document = parse_json(str(payload, "utf-8"))
        except (ValueError, RecursionError):
            return [_UNREAD]
        return [self._row(item, now_ms) for item in _objects(document, _DEPTH_MAX)] or [_UNREAD]

    def _row(self, record: Mapping[str, object], now_ms: int | None) -> Row:
        named = self._decoder.named(record)
        shaped = self._decoder.shape(named, now_ms)
        values = named if isinstance(shaped, Rejected | Filtered) else {**named, **shaped}
        fitting: dict[str, Any] = {}
        for field in self._fields:
            self._fit(field, values, fitting)
        holds_any = any(field.name in values for field in self._fields)
        return fitting, len(fitting) == len(self._fields) if holds_any else None

    def _fit(self, field: Field, record: Mapping[str, object], found: dict[str, Any]) -> None:
        value = record.get(field.name)
        if value is None:
            return
        try:
            found[field.name] = field.convert(value)
        except _UNFIT:
            return


def _objects(document: object, depth: int) -> Iterator[Mapping[str, object]]:
    """Every object of a document, outer ones first, because CDC envelopes nest their rows some levels down."""
    if depth == 0:
        return
    if isinstance(document, dict):
        yield document
    inner = document.values() if isinstance(document, dict) else document if isinstance(document, list) else ()
    for item in inner:
        yield from _objects(item, depth - 1)
