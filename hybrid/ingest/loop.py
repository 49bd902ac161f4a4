"""Ingestion as a task: batch after batch, until caught up or until stopped."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hybrid.config.table_config import Half, TableSpec
from hybrid.errors import NotFoundError, StreamError
from hybrid.ingest.batch import BatchReport, run_batch, stream_of
from hybrid.kafka.streams import absent_words, view_stream
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import open_half
from hybrid.lake.table_context import TableContext
from hybrid.runtime.json_values import capitalized
from hybrid.runtime.sentence_repr import shown_as_sentence

_POLL_S = 1.0


@shown_as_sentence
@dataclass(frozen=True)
class IngestReport:
    """The result of an ingestion: rows and rejected rows in `batches` commits, in one `sentence`.

    `filtered` counts messages that the table's filter dropped.
    """

    rows: int
    rejected: int
    batches: int
    sentence: str
    filtered: int = 0

    @property
    def did_something(self) -> bool:
        """Whether something was committed."""
        return self.batches > 0


def ingest_until_caught_up(table: TableContext, **options: Any) -> IngestReport:
    """Ingest until nothing is left beyond the committed offsets."""
    return _ingest(table, lambda report: report is None or report.behind <= 0, **options)


def ingest_forever(table: TableContext, stop: Callable[[], bool], **options: Any) -> IngestReport:
    """Ingest until `stop()`, called between batches, returns true. Waits for a topic that does not exist yet."""
    has_reported = False
    while not stop():
        try:
            return _ingest(table, lambda report: _pause_or_stop(report, stop), **options)
        except NotFoundError as missing:
            if not has_reported:
                table.bench.progress.say(f"{missing} Waiting for it.")
                has_reported = True
            time.sleep(_POLL_S)
    return IngestReport(0, 0, 0, _sentence(table.spec, 0, 0, 0))


def _pause_or_stop(report: BatchReport | None, stop: Callable[[], bool]) -> bool:
    if report is None and not stop():
        time.sleep(_POLL_S)
    return stop()


def _ingest(
    table: TableContext,
    finished: Callable[[BatchReport | None], bool],
    newest: Callable[[], TableSpec] | None = None,
    **options: Any,
) -> IngestReport:
    """Run batches until `finished`.

    `newest` returns the current table definition: columns may be added or widened in between.
    """
    rows = rejected = batches = sealed = filtered = 0
    while True:
        table = table.renewed(newest)
        report = run_batch(table, **options)
        if report is not None:
            rows, rejected, batches = rows + report.rows, rejected + report.rejected, batches + 1
            sealed, filtered = sealed + report.sealed, filtered + report.filtered
            table.bench.progress.step(f"ingesting '{table.name}' (rows)", rows, rows + report.behind)
        if finished(report):
            absent = _absent(table.spec, table.layout)
            sentence = _sentence(table.spec, rows, rejected, batches, sealed, filtered) + (
                f" {absent}." if absent else ""
            )
            return IngestReport(rows, rejected, batches, sentence, filtered)


def _absent(spec: TableSpec, layout: TableLayout) -> str | None:
    """Which of several topics do not exist yet, in words. Kafka is asked only if one was never read."""
    stream, state = stream_of(spec), open_half(layout.half(Half.REALTIME)).realtime
    if len(stream.topics) == 1 or not state.reads(stream) or len(state.known_ids(stream)) == len(stream.topics):
        return None
    try:
        absent = absent_words(stream, view_stream(stream).topic_ids)
    except StreamError:  # the result of the ingestion is reported all the same
        return None
    return capitalized(absent) if absent else None


def _sentence(spec: TableSpec, rows: int, rejected: int, batches: int, sealed: int = 0, filtered: int = 0) -> str:
    stream = stream_of(spec)
    if not batches:
        return f"Nothing to ingest: table '{spec.name}' has read everything in {stream.words}."
    if sealed and not (rows or rejected or filtered):
        aged = "1 segment" if sealed == 1 else f"{sealed} segments"
        return f"Sealed {aged} of '{spec.name}' at the time threshold; there was nothing new in {stream.words}."
    rejections = f"; {rejected} messages could not be read and are kept as rejected rows" if rejected else ""
    dropped = f"; {'1 message was' if filtered == 1 else f'{filtered} messages were'} filtered out" if filtered else ""
    commits = "1 commit" if batches == 1 else f"{batches} commits"
    return f"Ingested {rows} rows from {stream.words} into '{spec.name}' in {commits}{dropped}{rejections}."
