"""A table's connectors: their status, pause, start and reset, and running those that are due."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from hybrid.config.connectors import (
    Connector,
    KafkaInput,
    StartKind,
    live_connector,
    waits_for,
)
from hybrid.config.table_config import Half
from hybrid.errors import ConflictError, HybridError, NotFoundError, SpecError, StreamError, UsageError
from hybrid.kafka.clients import CHECK_TIMEOUT_MS
from hybrid.operations.connectors.progress import ConnectorView, pause_offsets
from hybrid.operations.connectors.source_opener import SourceOpener
from hybrid.operations.connectors.status import ConnectorStatus, Standing, configured_status
from hybrid.runtime.sentence_repr import shown_as
from hybrid.table.boundary import TopicPartition, current_keys, place_text

if TYPE_CHECKING:
    from hybrid.config.table_config import StreamConfig, TableSpec
    from hybrid.flow.connectors.history import HistoryReport
    from hybrid.flow.connectors.source import Source
    from hybrid.home.home import Home
    from hybrid.home.table_ref import TableRef
    from hybrid.ingest.reset import ResetReport
    from hybrid.kafka.streams import StreamView

_LOG = logging.getLogger(__name__)


class Done(NamedTuple):
    """The result of a round: sentences, and the first error of a connector that failed in it."""

    said: Sequence[str]
    failed: HybridError | None


@shown_as("{0._table.name}")
class TableConnectors:
    """The connectors of one table."""

    def __init__(self, home: Home, table: TableRef) -> None:
        self._home, self._table, self._spec = home, table, table.spec
        self._waits = waits_for(self._spec.connectors)
        self._known = home.catalog.connectors

    @property
    def spec(self) -> TableSpec:
        """The table's definition."""
        return self._spec

    def now_ms(self) -> int:
        """The home's clock: epoch milliseconds."""
        return self._home.now_ms()

    # Status

    def statuses(self, *, ask_kafka: bool = True) -> list[ConnectorStatus]:
        """The status of all connectors, in the definition's order. A change since the last call is logged."""
        if not self._spec.connectors and self._spec.stream is not None:
            return [configured_status(self._home, self._table, self._spec.stream)]
        statuses = self.look(ask_kafka=ask_kafka)
        for status in statuses:
            self._tell(status)
        return statuses

    def look(self, *, ask_kafka: bool = True) -> list[ConnectorStatus]:
        """The status of all connectors, without logging changes."""
        if not self._spec.connectors:
            return []
        standing = self._standing()
        return [standing.status(connector, ask_kafka=ask_kafka) for connector in self._spec.connectors]

    def status(self, name: str) -> ConnectorStatus:
        """The status of a connector, by its name or one of its labels."""
        full_name = self.statuses()[0].name if self._is_configured(name) else self.find(name).name
        return next(status for status in self.statuses() if status.name == full_name)

    def find(self, name: str) -> Connector:
        """A connector by its name or one of its labels; NotFoundError, with a suggestion, for another name."""
        for connector in self._spec.connectors:
            if name == connector.name or name in connector.labels:
                return connector
        raise NotFoundError.named("Connector", name, [connector.name for connector in self._spec.connectors])

    # Pause, start, reset

    def pause(self, name: str | None) -> list[ConnectorStatus]:
        """Pauses one connector, or all. Messages that Kafka holds now are still ingested; later ones are not."""
        if self._is_configured(name):
            self._home.catalog.serving.pause(self._spec.name)
            return self.statuses()
        view = self._view()
        for connector in self._chosen(name):
            if view.is_paused(connector) and view.known(connector.name).paused is not None:
                continue  # the first pause's offsets still apply
            ends = self._ends() if isinstance(connector.transport, KafkaInput) else None
            self._pause(connector.name, ends)
        return self.statuses()

    def start(self, name: str | None) -> list[ConnectorStatus]:
        """Starts one connector, or all: at once, or when the connectors that it waits for have completed."""
        self._home.catalog.serving.resume(self._spec.name)  # a pause of the whole table stops each connector
        if self._is_configured(name):
            return self.statuses()
        for connector in self._chosen(name):
            self._known.start(self._spec.name, connector.name)
        return self.statuses()

    def _is_configured(self, name: str | None) -> bool:
        """Whether `name` means the stream of a table config, which is not a connector and is paused with its table.

        SpecError for a table without connectors and stream, NotFoundError for another name.
        """
        stream = self._spec.stream
        if self._spec.connectors:
            return False
        if stream is None:
            raise SpecError(f"Table '{self._spec.name}' has no connector and no stream.")
        stream_names = (stream.connector, *stream.topics)
        if name not in (None, *stream_names):
            raise NotFoundError.named("Connector", str(name), stream_names)
        return True

    def _pause(self, name: str, ends: Mapping[TopicPartition, int] | None) -> None:
        topics = self._spec.stream.topics if self._spec.stream is not None else ()
        offsets = {place_text(topics, place): offset for place, offset in ends.items()} if ends is not None else None
        self._known.pause(self._spec.name, name, offsets)

    def _chosen(self, name: str | None) -> list[Connector]:
        return [self.find(name)] if name is not None else list(self._spec.connectors)

    def reset(
        self, to: str, name: str | None = None, *, dry_run: bool = False, accept: bool | ResetReport = False
    ) -> ResetReport:
        """Resets a topic of the stream to `to`, a place as `hybrid.config.offset_place` parses it.

        `name` is the topic's; where the table reads one topic, its connector's name or None will do. `accept` is the
        report of a dry run, which is then carried out, or True for whatever the reset finds now. ConflictError, naming
        what would be lost, skipped or read again, when that was not accepted or has grown since. NotFoundError for an
        unknown name, UsageError when the name does not decide between several topics.
        """
        from hybrid.config.offset_place import parse_place
        from hybrid.ingest.batch import stream_of
        from hybrid.ingest.reset import reset_stream, resolve_reset

        stream, table = stream_of(self._spec), self._table
        topic = self._topic(stream, name)
        place = parse_place(to, topic, self.now_ms(), "--to")
        plan = resolve_reset(self._spec, table.layout, topic, place) if dry_run or isinstance(accept, bool) else accept
        if plan.topic != topic:
            raise UsageError(f"What was accepted is of topic '{plan.topic}', and not of '{topic}'.")
        if dry_run or not plan.partitions:
            return replace(plan, dry_run=dry_run)
        if accept is False:
            raise ConflictError(
                f"{plan.sentence} That has to be accepted; nothing was changed.",
                hint='hybrid connector reset TABLE --to PLACE --yes accepts it, over HTTP {"yes": true}',
            )

        def work() -> ResetReport:
            act_id = self._home.act_id("reset")
            done = reset_stream(self._home.table_context(table), plan, act_id=act_id, holding=self._hold)
            if done.version is not None:
                self._hold(done)
            return done

        report = self._home.run_recorded(self._spec.name, "reset", work)
        self._known.worked(self._spec.name, stream.connector)
        return report

    def _topic(self, stream: StreamConfig, name: str | None) -> str:
        """The topic that a name refers to."""
        if name in stream.topics:
            return str(name)
        if name is not None and self._spec.connectors:
            name = self.find(name).name
        if name not in (None, stream.connector):
            raise NotFoundError.named("Stream", str(name), [stream.connector, *stream.topics])
        if len(stream.topics) > 1:
            raise UsageError(
                f"Table '{self._spec.name}' reads {stream.words}: say which one is reset.",
                hint=f"hybrid connector reset {self._spec.name} {stream.topics[0]} --to PLACE",
            )
        return stream.topics[0]

    def _hold(self, report: ResetReport) -> None:
        """Moves the offsets of a pause to those of the reset: its old offsets belong to the epoch before.

        Before the commit it uses the lower of both, so that a crash lets no message through.
        """
        paused = self.pause_offsets()
        if paused is not None:
            ends = {TopicPartition(report.topic, partition.partition): partition.to for partition in report.partitions}
            if report.version is None:
                ends = {place: min(to, paused.get(place, 0)) for place, to in ends.items()}
            assert self._spec.stream is not None
            self._pause(self._spec.stream.connector, {**paused, **ends})

    # Running

    def pause_offsets(self) -> Mapping[TopicPartition, int] | None:
        """The offsets, by partition, at which a pause stops the table's stream; None when it is not paused."""
        return pause_offsets(self._home, self._spec.name, self._spec.connectors)

    def waits(self) -> str | None:
        """Why the table's stream is not read yet, in words; None when it is read, or when no connector reads one."""
        live = live_connector(self._spec.connectors)
        if live is None:
            return None
        if self._view().is_started(live):
            return None
        state, detail = self._standing().state(live)
        return f"connector '{live.name}' is {state}: {detail}" if detail else f"connector '{live.name}' starts"

    def run_due(self, stop: Callable[[], bool]) -> Done:
        """Runs every connector that is due: loads histories and starts the stream.

        A connector that fails is recorded as FAILED, with its error; the others go on.
        """
        sentences: list[str] = []
        failed: HybridError | None = None
        tried: set[str] = set()
        while self._spec.connectors and not stop():
            due = self._next_due(tried)
            if due is None:
                break
            tried.add(due.name)
            try:
                done = self._run(due, stop)
                sentences += [done] if done is not None else []
                self._known.worked(self._spec.name, due.name)
            except HybridError as error:
                failed = failed or error
                self._known.failed(self._spec.name, due.name, error.words)
                _LOG.warning("Connector '%s' of '%s' is FAILED: %s", due.name, self._spec.name, error.words)
            self.statuses(ask_kafka=False)
        return Done(sentences, failed)

    def _next_due(self, tried: set[str]) -> Connector | None:
        view = self._view()
        for connector in self._spec.connectors:
            if connector.name in tried or view.is_done(connector) or view.is_started(connector):
                continue
            if not view.is_paused(connector) and not view.open_before(self._waits[connector.name]):
                return connector
        return None

    def _run(self, connector: Connector, stop: Callable[[], bool]) -> str | None:
        is_live = isinstance(connector.transport, KafkaInput)
        return self._start_live(connector) if is_live else self._load(connector, stop)

    def _load(self, connector: Connector, stop: Callable[[], bool]) -> str | None:
        from hybrid.flow.connectors.history import load_history

        home, table = self._home, self._table
        opener = SourceOpener(connector, self._spec, self.now_ms(), self._check_handover)
        progress = self._view().progress(connector.name)
        if progress is not None and progress.is_complete and opener.after(progress.source) is None:
            return None  # the followed source has nothing new, so no run is recorded

        def is_over() -> bool:
            return stop() or self._view().is_paused(connector)

        def work() -> HistoryReport:
            rows_max = opener.rows_max
            return load_history(home.table_context(table), connector.name, opener, is_over, rows_max)

        return home.run_recorded(self._spec.name, "connector", work).sentence

    def _check_handover(self, connector: Connector, source: Source) -> None:
        """Checks, before anything is loaded, that the stream after this history can start where it is configured to."""
        from hybrid.flow.connectors.handover import tells_all_of
        from hybrid.flow.connectors.source import raise_to
        from hybrid.kafka.streams import view_stream

        stream = self._spec.stream
        after = live_connector(self._spec.connectors)
        if stream is None or after is None or connector.name not in self._before(after):
            return
        assert isinstance(after.transport, KafkaInput)
        kind, now = after.transport.start.kind, self._view()
        others = [name for name in now.open_before(self._before(after)) if name != connector.name]
        if kind not in {StartKind.OFFSETS, StartKind.AFTER_HISTORY}:
            return
        view = view_stream(stream, CHECK_TIMEOUT_MS)
        if view.topic_ids.keys() == set(stream.topics):
            loaded, highest = dict(self._loaded_offsets(after) or {}), source.highest_offsets(self._home.bench.spark)
            raise_to(loaded, highest or {})
            if loaded or not others or kind is StartKind.OFFSETS:
                has_rows = any(piece.rows != 0 for piece in source.pieces)
                tells_all = self._tells_all(after) and (not has_rows or tells_all_of(stream.topics, highest))
                self._starts(after, view, loaded or None, is_whole=not others, tells_all=tells_all or bool(others))

    def _start_live(self, connector: Connector) -> str:
        from hybrid.ingest.start import start_stream
        from hybrid.kafka.streams import require_topics

        stream, table = self._spec.stream, self._table
        assert stream is not None
        view = require_topics(stream, needed=stream.topics)  # a topic created later would have no defined start
        starts = self._starts(connector, view, self._loaded_offsets(connector), tells_all=self._tells_all(connector))
        start_stream(self._home.table_context(table), view, starts)
        offsets = ", ".join(f"{place_text(stream.topics, place)}: {offset}" for place, offset in sorted(starts.items()))
        return f"Connector '{connector.name}' reads {stream.words} from offset (by partition) {offsets}."

    def _starts(
        self,
        connector: Connector,
        view: StreamView,
        loaded: Mapping[str, int] | None,
        *,
        is_whole: bool = True,
        tells_all: bool,
    ) -> dict[TopicPartition, int]:
        from hybrid.flow.connectors.handover import TopicOffsets, start_offsets
        from hybrid.ingest.plan import check_partitions
        from hybrid.kafka.streams import offsets_at

        stream = self._spec.stream
        assert isinstance(connector.transport, KafkaInput) and stream is not None
        check_partitions(self._spec.name, stream, view)
        start, at_time = connector.transport.start, None
        if start.kind is StartKind.TIMESTAMP and start.timestamp_ms is not None:
            at_time = offsets_at(stream, view.ends, start.timestamp_ms)
        return start_offsets(
            connector.name, start, TopicOffsets(view.starts, view.ends), loaded, at_time, is_whole, tells_all
        )

    def _loaded_offsets(self, connector: Connector) -> Mapping[str, int] | None:
        """The highest Kafka offsets in the history loaded before a connector; None when the history has none."""
        from hybrid.flow.connectors.source import raise_to

        view, highest = self._view(), dict[str, int]()
        for name in self._before(connector):
            progress = view.progress(name)
            raise_to(highest, (progress.offsets if progress is not None else None) or {})
        return highest or None

    def _tells_all(self, connector: Connector) -> bool:
        """Whether all rows of the history loaded before a connector are known to be from its topics."""
        from hybrid.flow.connectors.handover import tells_all_of

        view = self._view()
        loads = [load for load in map(view.progress, self._before(connector)) if load is not None and load.rows]
        return self._spec.stream is not None and all(tells_all_of(self._spec.stream.topics, it.offsets) for it in loads)

    def _before(self, connector: Connector) -> frozenset[str]:
        """All connectors that must complete before this one starts, directly or indirectly."""
        names: set[str] = set()
        waiting = set(self._waits[connector.name])
        while waiting:
            name = waiting.pop()
            names.add(name)
            waiting |= self._waits[name] - names
        return frozenset(names)

    # Views

    def _view(self) -> ConnectorView:
        return ConnectorView(self._table, self._known.of(self._spec.name))

    def _standing(self) -> Standing:
        return Standing(self._home, self._table, self._view())

    def _ends(self) -> Mapping[TopicPartition, int] | None:
        """Kafka's end offsets by partition; the committed offsets where a topic is gone or Kafka does not answer."""
        from hybrid.kafka.streams import view_stream

        stream = self._spec.stream
        assert stream is not None
        state = self._table.half(Half.REALTIME).realtime
        keys = current_keys(stream, {key.place for key in state.offsets}, state.offsets)  # without the keys of replays
        committed = {place: state.offsets[key] for place, key in keys.items() if key in state.offsets}
        if not state.reads(stream):
            return None
        try:
            return {**committed, **view_stream(stream, CHECK_TIMEOUT_MS).ends}
        except StreamError:
            return committed

    def _tell(self, status: ConnectorStatus) -> None:
        """Logs a line for every change of state."""
        if self._known.note(self._spec.name, status.name, status.state):
            _LOG.info(
                "Connector '%s' of '%s' is %s: %s", status.name, self._spec.name, status.state, status.detail or ""
            )
