"""Corrections by what Kafka still holds: the window as if it had been ingested with the present settings.

All rows of the window whose message Kafka holds are removed, including their replays and corrections, which keep its
coordinates. Rows that replacements brought are removed too. The rows read from Kafka are added. Rows of messages that
Kafka no longer holds, and of other connectors, stay. The run claims rejected rows whose message is read, as with
`--from-rejected`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from hybrid.lake.layout import quoted
from hybrid.lake.refetched_rows import RefetchedRows
from hybrid.lake.rejected import MESSAGE, rejected_rows
from hybrid.lake.staged_frames import stage_frame
from hybrid.progress import counted
from hybrid.replace.backfill.base import BUCKET, Base
from hybrid.replace.backfill.claims import stage_claims
from hybrid.replace.backfill.correction import Correction
from hybrid.replace.backfill.request import Request
from hybrid.replace.backfill.row_replacement import rebuilt_rows
from hybrid.replace.backfill.values import check_corrected
from hybrid.table import columns
from hybrid.table.boundary import PartitionKey
from hybrid.table.replays import replay_connector
from hybrid.table.upsert_order import REPLACEMENT_CONNECTOR

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def corrected_by_kafka(base: Base, request: Request) -> Correction:
    """The correction that rebuilds the window. Its claims are staged in the base's folder."""
    in_kafka = request.held
    assert in_kafka is not None and base.realtime is not None
    staged = stage_frame(base.bench, _of_interest(base, in_kafka.frame), base.folder / "input", in_kafka.frame.schema)
    rows = staged.where(_is_row(base))
    _stage_claims(base, rows)
    correction = rebuilt_rows(base, rows, _goes(in_kafka))
    warnings = (*_told_of_messages(base, staged), *_told_of_kafka(base, in_kafka))
    return replace(correction, checks=check_corrected(base, request, rows), warnings=(*correction.warnings, *warnings))


def _of_interest(base: Base, frame: DataFrame) -> DataFrame:
    """Rows of the window, and messages that do not convert."""
    window = base.window
    if window is None:
        return frame
    is_inside = f"{columns.TIME} >= {window.start} AND {columns.TIME} < {window.end}"
    return frame.where(f"{columns.REASON} IS NOT NULL OR coalesce({is_inside}, FALSE)")


def _is_row(base: Base) -> Column:
    """Whether a row is not rejected."""
    return quoted(columns.SEGMENT) != columns.rejected_segment(base.spec.name)


def _goes(held: RefetchedRows) -> Column:
    """True for stored rows of the window that incoming rows replace; never null."""
    from pyspark.sql import functions as F

    def of_partition(key: PartitionKey, first: int) -> Column:
        # A replay has its own epoch but its message's offset, so it counts as the message.
        is_message = quoted(columns.CONNECTOR).isin(key.connector, replay_connector(key.connector))
        is_there = (quoted(columns.TOPIC) == key.topic) & (quoted(columns.PARTITION) == key.partition)
        return is_message & is_there & (quoted(columns.OFFSET) >= first)

    was_brought = quoted(columns.CONNECTOR) == REPLACEMENT_CONNECTOR
    is_held = (of_partition(key, first) for key, first in sorted(held.held_from.items()))
    return F.coalesce(reduce(or_, is_held, was_brought), F.lit(False))


def _stage_claims(base: Base, rows: DataFrame) -> None:
    """Stages claims for the rejected rows whose messages are read."""
    assert base.realtime is not None
    names = [quoted(name) for name in MESSAGE]
    coming = base.with_bucket(rows).select(*names, quoted(BUCKET))
    open_ones = rejected_rows(base.bench, base.spec, base.realtime).of_streams.select(*names)
    stage_claims(base, open_ones.join(coming, list(MESSAGE)))


def _told_of_messages(base: Base, staged: DataFrame) -> Iterator[str]:
    refused = staged.where(quoted(columns.REASON).isNotNull()).groupBy(columns.REASON).count().collect()
    if refused:
        commonest = max(refused, key=lambda row: (row["count"], row[columns.REASON]))[columns.REASON]
        messages = counted(sum(row["count"] for row in refused), "message")
        yield f"{messages} that Kafka holds do not convert (commonest reason: {commonest.removesuffix('.')})."


def _told_of_kafka(base: Base, held: RefetchedRows) -> Iterator[str]:
    """For each partition, what Kafka no longer holds and how many rows of the window therefore stay."""
    from pyspark.sql import functions as F

    there = base.with_bucket(base.in_segments(base.candidates))
    stays = there.where(quoted(BUCKET).isNotNull() & ~_goes(held))
    is_row = quoted(columns.OP) == columns.OP_ROW
    counts = stays.groupBy(columns.CONNECTOR, columns.TOPIC, columns.PARTITION).agg(F.count_if(is_row)).collect()
    rows = {(row[0], row[1], row[2]): row[3] for row in counts}
    for key, first in sorted(held.held_from.items()):
        if first > 0:
            names = (key.connector, replay_connector(key.connector))
            staying = sum(rows.get((name, key.topic, key.partition), 0) for name in names)
            yield (
                f"Kafka no longer holds what lies before offset {first} in partition {key.partition} of topic "
                f"'{key.topic}': {counted(staying, 'row')} of the stretch from there stay as they are."
            )
