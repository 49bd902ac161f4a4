"""Reads exact offset ranges from Kafka and converts them to stored rows, decoded or rejected, each with its segment.

Spark's workers return the rows, or write them to data files, in the half's folder or on the warehouse's store.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from hybrid.config.table_config import Half, StreamConfig, TableSpec
from hybrid.ingest.segment_stats import (
    Pieces,
    segment_stats_from_json,
    segment_stats_of,
    segment_stats_to_json,
    together,
)
from hybrid.kafka.remote_storage import may_have_remote_storage
from hybrid.lake.commit import FileAct
from hybrid.lake.layout import physical_ddl, statistics_columns
from hybrid.lake.worker_files import WorkerFiles, bring_uploaded
from hybrid.lake.worker_output import RESULT_DDL, collected_texts, returning
from hybrid.lake.workers import Worker, parallelism
from hybrid.records.decode import Decoder
from hybrid.records.messages import Message, pack
from hybrid.records.outcome import Batch
from hybrid.runtime.gc_tuning import collect_rarely
from hybrid.table import columns
from hybrid.table.boundary import TopicPartition
from hybrid.table.ranges import OffsetRange
from hybrid.table.segments import Assigner, Thresholds
from hybrid.table.state import RealtimeState

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

# Reads 3 to 4 times faster than with Kafka's defaults.
_CONSUMER = {
    "kafka.max.partition.fetch.bytes": str(8 * 1024 * 1024),
    "kafka.fetch.max.bytes": str(50 * 1024 * 1024),
    "kafka.max.poll.records": "20000",
    "kafka.isolation.level": "read_committed",
}

# A consumer asks for further records before it returns these, and there are none. Spark then asks for the offsets at
# both ends, and a broker answers a connection's requests in turn: with Kafka's default half a second later. Brokers
# before 3.8 give up reading remote storage after that time, so there the default stays.
_BRIEF_WAIT = {"kafka.fetch.max.wait.ms": "5"}
# A task costs a tenth of a second, and a topic may have hundreds of partitions; so many messages take a second.
_TASKS_PER_CORE, _TASK_OFFSETS = 4, 100_000


def read_ranges(spark: SparkSession, stream: StreamConfig, ranges: Iterable[OffsetRange]) -> DataFrame:
    """The messages in exactly these ranges, each whole in one Spark partition and in offset order.

    There are four partitions for each core, more for many messages.
    """
    ranges = list(ranges)
    offsets = sum(piece.end - piece.start for piece in ranges)
    tasks = max(_TASKS_PER_CORE * parallelism(spark), offsets // _TASK_OFFSETS)
    starts: dict[str, dict[str, int]] = defaultdict(dict)
    ends: dict[str, dict[str, int]] = defaultdict(dict)
    for piece in ranges:
        starts[piece.key.topic][str(piece.key.partition)] = piece.start
        ends[piece.key.topic][str(piece.key.partition)] = piece.end
    reader = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", stream.brokers)
        .option("assign", json.dumps({topic: [int(p) for p in parts] for topic, parts in starts.items()}))
        .option("startingOffsets", json.dumps(starts))
        .option("endingOffsets", json.dumps(ends))
        .option("failOnDataLoss", "true")
    )
    secured = {f"kafka.{key}": value for key, value in stream.security.for_java().items()}
    wait = {} if may_have_remote_storage(stream) else _BRIEF_WAIT
    for key, value in {**_CONSUMER, **wait, **secured}.items():
        reader = reader.option(key, value)
    # With a single topic every message has the same value, so the column is left out.
    names = ("topic",) if len(stream.topics) > 1 else ()
    beside = ("key", "headers") if stream.metadata else ()
    return (
        reader.option("includeHeaders", str(stream.metadata).lower())
        .load()
        .coalesce(tasks)
        .selectExpr(
            *names, "value", "partition", "offset", "cast(unix_millis(timestamp) as bigint) as timestamp", *beside
        )
    )


def decode_frame(messages: DataFrame, spec: TableSpec, assigners: Mapping[TopicPartition, Assigner]) -> DataFrame:
    """Stored rows of the REALTIME half, including rejected rows, made by `Decoder`.

    `assigners` assign segments, by Kafka topic and partition.
    """
    return messages.mapInArrow(_worker(spec, dict(assigners)), physical_ddl(spec, Half.REALTIME))


def write_ranges(
    messages: DataFrame,
    spec: TableSpec,
    assigners: Mapping[TopicPartition, Assigner],
    act: FileAct,
    files: WorkerFiles,
) -> tuple[list[dict[str, object]], Pieces]:
    """Write the same rows to files of the operation's half. Returns their log entries and the segment statistics.

    Messages that the table's filter drops are counted without a segment. No query sees the files before they are
    committed. Raises RegistryError when a worker needs a schema and the registry does not answer, StoreError and
    MachineError when a worker cannot store a file, MachineError when a Spark Connect server is lost.
    """
    writer = _writer(spec, dict(assigners), act.id, files)
    results = [json.loads(text) for text in collected_texts(messages.mapInArrow(writer, RESULT_DDL))]
    entries = [entry for result in results for entry in result["files"]]
    if files.store is not None:
        bring_uploaded(files.half, entries)
    return entries, together(segment_stats_from_json(result["pieces"]) for result in results)


def assigners_for(
    spec: TableSpec, state: RealtimeState, ranges: Iterable[OffsetRange], limits: Thresholds, now_ms: int
) -> dict[TopicPartition, Assigner]:
    """One assigner for each partition to read, starting from the half's consuming segments."""
    return {
        (key := piece.key).place: Assigner(
            spec.name,
            key,
            limits,
            now_ms,
            state.consuming.get(key),
            state.sequences.get(key, 0),
            spec.group(key.topic, key.partition),
        )
        for piece in ranges
    }


def _worker(spec: TableSpec, assigners: dict[TopicPartition, Assigner]) -> Worker:
    """The function that Spark runs in its workers. It receives whole ranges, each in offset order."""

    def convert(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        collect_rarely()
        decoder = Decoder(spec)
        for batch in batches:
            rows, _ = _convert_batch(batch, spec, decoder, assigners)
            yield rows.filter(rows.column(columns.SEGMENT).is_valid())

    return convert


def _writer(spec: TableSpec, assigners: dict[TopicPartition, Assigner], act_id: str, place: WorkerFiles) -> Worker:
    """Like `_worker`, but writes the rows to files, one per segment. At most two are open at a time.

    The ranges of a task come one after the other, though a batch may hold the end of one and the beginning of the next.
    """

    def write(batches: Iterable[pa.RecordBatch]) -> list[str]:
        collect_rarely()
        decoder, statistics = Decoder(spec), statistics_columns(spec, Half.REALTIME)
        rejected = columns.rejected_segment(spec.name)
        entries: list[dict[str, object]] = []
        counted: Pieces = {}
        with place.opened(act_id, statistics) as files:
            for batch in batches:
                rows, sizes = _convert_batch(batch, spec, decoder, assigners)
                counted = together([counted, segment_stats_of(rows, sizes)])
                for segment, part in _by_segment(rows):
                    if segment not in files.segments:
                        # A partition fills its segments one after the other, so earlier ones are full.
                        full = [name for name in files.segments if rejected not in (name, segment)]
                        entries += [files.close(name) for name in full]
                    files.open(segment).write(part.drop_columns([columns.SEGMENT]))
            entries += [files.close(name) for name in files.segments]
        return [json.dumps({"files": entries, "pieces": segment_stats_to_json(counted)})]

    return returning(write)


def _by_segment(rows: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of each segment, in their order. Rows without a segment are left out."""
    import pyarrow.compute as pc

    segments = rows.column(columns.SEGMENT)
    names = [name for name in segments.unique().to_pylist() if name is not None]
    if len(names) == 1 and not segments.null_count:
        yield names[0], rows
        return
    for name in names:
        yield name, rows.filter(pc.equal(segments, name))


def _convert_batch(
    batch: pa.RecordBatch, spec: TableSpec, decoder: Decoder, assigners: Mapping[TopicPartition, Assigner]
) -> tuple[pa.RecordBatch, pa.Array]:
    """Convert messages to stored rows, column by column. A message with several records becomes several rows.

    A message that the table's filter drops becomes a row without a segment, so that it is counted. The second result is
    the bytes of each row's message.
    """
    import pyarrow as pa

    from hybrid.lake.create import arrow_schema

    topics = batch.column("topic") if "topic" in batch.schema.names else None
    without_topic = batch if topics is None else batch.drop_columns(["topic"])
    values, partitions, offsets, timestamps, *beside = (column.to_pylist() for column in without_topic.columns)
    whole = _whole(values, *beside, partitions, offsets, timestamps) if beside else None
    by_message = _by_message(topics, partitions, assigners)
    decoded = decoder.decode_batch(values, timestamps, whole)
    count = len(decoded.reasons)
    messages = batch if _one_each(decoded, values) else batch.take(pa.array(decoded.origins, pa.int64()))
    sizes = _sizes(values, decoded)
    raw = [
        pack(whole[of] if whole else Message(values[of])) if why is not None else None
        for of, why in zip(decoded.origins, decoded.reasons, strict=True)
    ]
    any_assigner, epochs = next(iter(assigners.values())), {assigner.key.epoch for assigner in assigners.values()}
    is_one_epoch = len(epochs) == 1
    ops = [columns.OP_DELETE if is_delete else columns.OP_ROW for is_delete in decoded.deletes]
    made = {
        columns.SEGMENT: _segments(spec, decoded, sizes, by_message),
        columns.CONNECTOR: pa.repeat(any_assigner.key.connector, count),
        columns.TOPIC: pa.repeat(any_assigner.key.topic, count) if topics is None else messages.column("topic"),
        columns.EPOCH: pa.repeat(any_assigner.key.epoch, count) if is_one_epoch else _epochs(decoded, by_message),
        columns.PARTITION: messages.column("partition"),
        columns.OFFSET: messages.column("offset"),
        columns.TIMESTAMP: messages.column("timestamp"),
        columns.OP: ops if any(decoded.deletes) else pa.repeat(columns.OP_ROW, count),
        columns.TIME: decoded.times_ms,
        columns.REASON: decoded.reasons,
        columns.RAW: raw,
        **{field.name: stored for field, stored in zip(spec.schema.fields, decoded.columns, strict=True)},
    }
    schema = arrow_schema(spec, Half.REALTIME)
    arrays = [_as_type(made[field.name], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema), pa.array(sizes, pa.int64())


def _one_each(found: Batch, values: Sequence[bytes | None]) -> bool:
    return found.origins == range(len(values))


def _sizes(values: Sequence[bytes | None], found: Batch) -> list[int]:
    """The bytes of each record's message. For a message with several records the first one carries them all."""
    if _one_each(found, values):
        return [len(value or b"") for value in values]
    firsts = map(int.__ne__, found.origins, chain((-1,), found.origins))
    return [len(values[of] or b"") if first else 0 for of, first in zip(found.origins, firsts, strict=True)]


def _segments(
    spec: TableSpec,
    found: Batch,
    sizes: Sequence[int],
    by_message: Sequence[Assigner],
) -> list[str | None]:
    """The segment of each record; None for records that the table's filter drops."""
    if not (any(found.reasons) or any(found.filtered)):
        return [by_message[of].assign(size) for of, size in zip(found.origins, sizes, strict=True)]
    rejected, segments = columns.rejected_segment(spec.name), list[str | None]()
    for of, size, reason, is_filtered in zip(found.origins, sizes, found.reasons, found.filtered, strict=True):
        if reason is None and not is_filtered:
            segments.append(by_message[of].assign(size))
        else:
            segments.append(None if is_filtered else rejected)
    return segments


def _whole(
    values: Sequence[bytes | None], keys: Sequence[bytes | None], headers: Sequence[Any], *places: Sequence[int]
) -> list[Message]:
    """The messages of a batch, with their keys and headers."""
    header_pairs = [[(fields["key"], fields["value"]) for fields in of_one or ()] for of_one in headers]
    return [Message(*fields) for fields in zip(values, keys, header_pairs, *places, strict=True)]


def _by_message(
    topics: pa.Array | None, partitions: Sequence[int], assigners: Mapping[TopicPartition, Assigner]
) -> list[Assigner]:
    """The assigner of each message; with a single topic the partition number identifies it."""
    if topics is None:
        by_number = {place.partition: assigner for place, assigner in assigners.items()}
        return [by_number[number] for number in partitions]
    by_place: dict[tuple[str, int], Assigner] = {
        (place.topic, place.partition): assigner for place, assigner in assigners.items()
    }
    return [by_place[place] for place in zip(topics.to_pylist(), partitions, strict=True)]


def _epochs(found: Batch, by_message: Sequence[Assigner]) -> list[int]:
    """The epoch of each record, for partitions with different numbers of resets."""
    return [by_message[of].key.epoch for of in found.origins]


def _as_type(values: Any, kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    return values.cast(kind) if isinstance(values, pa.Array) else pa.array(values, kind)
