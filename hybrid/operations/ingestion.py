"""Ingestion of a table from Kafka: one batch, until caught up, or until stopped; replays; sealing."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hybrid.config.connectors import live_connector
from hybrid.config.table_config import Half
from hybrid.errors import HybridError, NotFoundError, StreamError
from hybrid.kafka.clients import QUERY_TIMEOUT_MS
from hybrid.operations.connectors.run import Done, TableConnectors
from hybrid.operations.pauses import is_paused
from hybrid.table.boundary import TopicPartition, current_keys

if TYPE_CHECKING:
    from hybrid.home.home import Home
    from hybrid.home.table_ref import TableRef
    from hybrid.ingest.batch import BatchReport
    from hybrid.ingest.loop import IngestReport
    from hybrid.ingest.replay import ReplayReport
    from hybrid.ingest.seal import SealReport

_WAIT_S = 2.0


def ingest_batch(home: Home, table: TableRef, offsets_max: int | None = None) -> BatchReport | None:
    """Commit one batch of Kafka's messages, at most `offsets_max`; None when there is nothing new. Records no run."""
    from hybrid.ingest.batch import run_batch

    pause_offsets = TableConnectors(home, table).pause_offsets
    most = _batch_max(table)
    return run_batch(home.table_context(table), min(most, offsets_max or most), pause_offsets)


def _batch_max(table: TableRef) -> int:
    """How many records one commit may hold: the stream connector's setting, bounded by BATCH_OFFSETS_MAX."""
    from hybrid.ingest.batch import BATCH_OFFSETS_MAX

    live = live_connector(table.spec.connectors)
    return min(BATCH_OFFSETS_MAX, (live.max_batch_size if live is not None else None) or BATCH_OFFSETS_MAX)


def ingest(home: Home, table: TableRef, stop: Callable[[], bool] | None = None) -> IngestReport:
    """Run the connectors that are due, then ingest until caught up; with `stop`, until it returns true.

    The error of a connector that failed is raised at the end.
    """
    from hybrid.ingest.loop import IngestReport, ingest_forever, ingest_until_caught_up

    if is_paused(home, table.name):
        go = f"`hybrid connector start {table.name}` lets it continue."
        return IngestReport(0, 0, 0, f"Nothing to ingest: table '{table.name}' is paused. {go}")
    connectors = TableConnectors(home, table)
    done = _run_due(home, connectors, stop)
    options: dict[str, Any] = {
        "batch_offsets_max": _batch_max(table),
        "pause_offsets": connectors.pause_offsets,
        "newest": lambda: home.spec(table.name),
    }

    def work() -> IngestReport:
        waits = connectors.waits()
        if waits is not None or (table.spec.connectors and table.spec.stream is None):
            return IngestReport(0, 0, 0, f"Nothing to ingest: {waits or 'the table has no stream'}.")
        if stop is None:
            return ingest_until_caught_up(home.table_context(table), **options)
        over = lambda: stop() or is_paused(home, table.name)  # noqa: E731
        return ingest_forever(home.table_context(table), over, **options)

    report = home.run_recorded(table.name, "ingest", work)
    if done.failed is not None:
        raise done.failed
    return report


def _run_due(home: Home, connectors: TableConnectors, stop: Callable[[], bool] | None) -> Done:
    """Run the connectors that are due; with `stop`, repeat until the stream can be read."""
    while True:
        done = connectors.run_due(stop or _never)
        for sentence in (*done.said, *([str(done.failed)] if done.failed is not None and stop is not None else ())):
            home.progress.say(sentence)
        if stop is None or stop() or connectors.waits() is None:
            return done
        time.sleep(_WAIT_S)


def _never() -> bool:
    return False


def replay_rejected(home: Home, table: TableRef, *, dry_run: bool = False) -> ReplayReport:
    """Replay the rejected rows that convert by the current settings; see `hybrid.ingest.replay`."""
    from hybrid.ingest import replay

    def work() -> ReplayReport:
        return replay.replay_rejected(home.table_context(table), dry_run=dry_run, act_id=home.act_id("replay"))

    return home.run_recorded(table.name, "replay", work, dry_run=dry_run)


def seal(home: Home, table: TableRef, segment: str | None = None) -> SealReport:
    """Commit what Kafka holds, unless the table is paused, then seal the consuming segments, or only the named one."""
    from hybrid.ingest.loop import ingest_until_caught_up
    from hybrid.ingest.seal import seal_consuming

    def work() -> SealReport:
        if not is_paused(home, table.name):
            pause_offsets = TableConnectors(home, table).pause_offsets
            ingest_until_caught_up(home.table_context(table), pause_offsets=pause_offsets)
        return seal_consuming(home.table_context(table), segment)

    return home.run_recorded(table.name, "seal", work)


def catch_up(home: Home, table: TableRef) -> list[str]:
    """Commit what Kafka holds, so that an operation sees the rows that queries show. Returns warnings if it failed."""
    from hybrid.ingest.loop import ingest_until_caught_up

    connectors = TableConnectors(home, table)
    if table.spec.stream is None or is_paused(home, table.name) or connectors.waits() is not None:
        return []
    try:
        ingest_until_caught_up(home.table_context(table), pause_offsets=connectors.pause_offsets)
    except (StreamError, NotFoundError) as error:
        return [f"Went on without what Kafka may hold beyond the last commit: {error}"]
    return []


def stream_ends(home: Home, table: TableRef) -> Mapping[TopicPartition, int] | None:
    """Kafka's end offsets now; None without a stream, while it is paused, or when Kafka does not answer."""
    from hybrid.kafka.streams import require_topics

    stream = table.spec.stream
    if stream is None or is_paused(home, table.name):
        return None
    try:
        known_topic_ids = table.half(Half.REALTIME).realtime.known_ids(stream)
        return require_topics(stream, known_topic_ids, QUERY_TIMEOUT_MS).ends
    except HybridError:
        return None


def has_committed(table: TableRef, ends: Mapping[TopicPartition, int]) -> bool:
    """Whether the stream is committed up to these offsets."""
    assert table.spec.stream is not None
    offsets = table.half(Half.REALTIME).realtime.offsets
    keys = current_keys(table.spec.stream, ends, offsets)
    return all(offsets.get(keys[place], 0) >= end for place, end in ends.items())
