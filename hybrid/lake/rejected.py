"""Decodes rejected rows again by the table's current settings, for replays and backfills.

A partition of REALTIME holds them, one row for each rejected record. The records of one message share its coordinates
and its raw bytes. A message is replayed as a whole or not at all, because nothing distinguishes its records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hybrid.config.table_config import Half, TableSpec
from hybrid.lake.half_frames import rows_in
from hybrid.lake.layout import ddl_of, physical_columns, quoted
from hybrid.records.decode import Decoder
from hybrid.records.messages import unpack
from hybrid.records.outcome import Decoded, Rejected
from hybrid.table import columns
from hybrid.table.replays import nothing_was_brought, replay_connector

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from hybrid.lake.commit_context import CommitContext
    from hybrid.lake.log import HalfSnapshot

# The coordinates of a message.
MESSAGE = (columns.CONNECTOR, columns.TOPIC, columns.EPOCH, columns.PARTITION, columns.OFFSET)
# Beside the stored columns: the kind of row, why it stays rejected, and first and last time of its message's rows.
KIND, WHY, LOW, HIGH = "_hy_kind", "_hy_why", "_hy_low", "_hy_high"
# KIND of a rejected row is its new mark, and `row` when it stays rejected. KIND of a row that enters the table:
BROUGHT = "brought"

OTHERS_ARE_THERE = "Other records of the message may be in the table already."
_REASONS = "reasons"


@dataclass(frozen=True)
class RejectedRows:
    """The rejected rows of a half at one version. `all` has the stored columns.

    `is_of_stream` selects rows that are still rejected and whose message came from a stream. The other rows stay
    unchanged.
    """

    spec: TableSpec
    all: DataFrame
    is_of_stream: Column

    @property
    def of_streams(self) -> DataFrame:
        """The rows that can be decoded again."""
        return self.all.where(self.is_of_stream)

    @property
    def others(self) -> DataFrame:
        """The other rows: replayed already, or of flows, whose files are read again."""
        return self.all.where(~self.is_of_stream)

    def decoded(self) -> DataFrame:
        """The stored rows that `of_streams` become, with KIND, WHY, LOW and HIGH.

        The frame holds each rejected row with its new mark, or with the current reason. It also holds the rows that
        enter the table, under a replay's connector, without a segment, with the epoch of their origin.
        """
        from pyspark.sql import functions as F

        messages = self.of_streams.groupBy(*(quoted(name) for name in MESSAGE)).agg(
            F.first(quoted(columns.TIMESTAMP)).alias(columns.TIMESTAMP),
            F.first(quoted(columns.RAW)).alias(columns.RAW),
            F.array_sort(F.collect_list(quoted(columns.REASON))).alias(_REASONS),
        )
        own = [(KIND, "string"), (WHY, "string"), (LOW, "bigint"), (HIGH, "bigint")]
        output_columns = [*physical_columns(self.spec, Half.REALTIME), *own]
        return messages.mapInArrow(_worker(self.spec), ddl_of(output_columns))


def rejected_rows(bench: CommitContext, spec: TableSpec, realtime: HalfSnapshot) -> RejectedRows:
    """The rejected rows of a REALTIME half. An operation checks for changes since `realtime` under the half's lock."""
    from pyspark.sql import functions as F

    stored_columns = [quoted(name) for name, _ in physical_columns(spec, Half.REALTIME)]
    frame = rows_in(bench, realtime, [columns.rejected_segment(spec.name)]).select(*stored_columns)
    # The state holds the topic's id for streams only.
    topic = F.concat(quoted(columns.CONNECTOR), F.lit("/"), quoted(columns.TOPIC))
    is_stream = topic.isin(sorted(realtime.realtime.topic_ids))
    return RejectedRows(spec, frame, (quoted(columns.OP) == columns.OP_ROW) & is_stream)


def _worker(spec: TableSpec) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def convert(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoder = Decoder(spec)
        for batch in batches:
            yield _as_batch(spec, [row for message in batch.to_pylist() for row in _rows(spec, decoder, message)])

    return convert


def _rows(spec: TableSpec, decoder: Decoder, message: Mapping[str, Any]) -> Iterator[tuple[object, ...]]:
    """The stored rows that a message becomes: its rejected rows, then the rows that enter the table."""
    reasons: list[str] = message[_REASONS]
    whole = unpack(message[columns.RAW])._replace(
        partition=message[columns.PARTITION], offset=message[columns.OFFSET], timestamp_ms=message[columns.TIMESTAMP]
    )
    outcomes = decoder.decode_all(whole.value, whole.timestamp_ms, whole)
    good = [outcome for outcome in outcomes if isinstance(outcome, Decoded)]
    refused = [outcome.reason for outcome in outcomes if isinstance(outcome, Rejected)]
    kind, why = columns.OP_REPLAYED, None
    if not nothing_was_brought(reasons):
        kind, why = columns.OP_ROW, OTHERS_ARE_THERE
    elif refused:
        kind, why = columns.OP_ROW, refused[0]
        # A reason names the number of records, with one row for each: both change together or not at all.
        reasons = refused if not good and len(refused) == len(reasons) else reasons
    elif not good:
        kind = columns.OP_FILTERED
    times = [outcome.time_ms for outcome in good if outcome.time_ms is not None] if kind == columns.OP_REPLAYED else []
    own = (why, min(times, default=None), max(times, default=None))
    connector, *place = (message[name] for name in (*MESSAGE, columns.TIMESTAMP))
    nothing = (None,) * len(spec.schema.fields)
    segment = columns.rejected_segment(spec.name)
    for reason in reasons:
        yield (segment, connector, *place, kind, None, reason, message[columns.RAW], *nothing, kind, *own)
    for outcome in good if kind == columns.OP_REPLAYED else ():
        op = columns.OP_DELETE if outcome.is_delete else columns.OP_ROW
        yield ("", replay_connector(connector), *place, op, outcome.time_ms, None, None, *outcome.values, BROUGHT, *own)


def _as_batch(spec: TableSpec, rows: list[tuple[object, ...]]) -> pa.RecordBatch:
    import pyarrow as pa

    from hybrid.lake.create import arrow_schema, record_batch

    own = [(KIND, pa.string()), (WHY, pa.string()), (LOW, pa.int64()), (HIGH, pa.int64())]
    schema = pa.schema([*arrow_schema(spec, Half.REALTIME), *(pa.field(name, kind) for name, kind in own)])
    return record_batch(schema, rows)
