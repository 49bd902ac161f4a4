"""The status of a table's connectors, from the halves and the catalog.

A pause and a wait are independent. A paused connector does not start when the connectors it waits for complete, and
starting it by hand does not skip the wait.

  COMPLETED   it has loaded everything
  PAUSED      a user paused it, or its definition says so
  FAILED      it stopped at an error, and is retried
  WAITING     connectors that it starts after have not completed: they are named, with the error where one failed
  RUNNING     it loads or reads rows
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hybrid.config.connectors import Connector, Datagen, DeltaInput, FileInput, KafkaInput, waits_for
from hybrid.config.table_config import Half
from hybrid.errors import HybridError
from hybrid.runtime.sentence_repr import shown_as
from hybrid.table.columns import bookkeeping

if TYPE_CHECKING:
    from hybrid.config.table_config import StreamConfig
    from hybrid.home.home import Home
    from hybrid.home.table_ref import TableRef
from hybrid.kafka.clients import CHECK_TIMEOUT_MS
from hybrid.operations.connectors.progress import ConnectorView

_LATELY_MS = 60_000
_STATES = {"WAITING": "WAITING", "STOPPED": "FAILED"}  # of a server's ingestion
_TRANSPORTS = {KafkaInput: "kafka_input", DeltaInput: "delta_table_input", FileInput: "file_input", Datagen: "datagen"}


@shown_as("{0.name}: {0.state}")
@dataclass(frozen=True)
class ConnectorStatus:
    """The status of a connector. `detail` says why in words; `waits_for` are the connectors it starts after.

    `records` and `bytes` count what it has brought to the table, `errors` failures and rejected records. `lag` counts
    offsets in Kafka that are not committed (None: Kafka does not answer, or the connector does not read it).
    """

    name: str
    labels: tuple[str, ...]
    transport: str
    state: str
    detail: str | None
    waits_for: tuple[str, ...]
    records: int
    bytes: int
    errors: int
    end_of_input: bool
    lag: int | None
    latest_error: str | None

    @property
    def failure(self) -> str:
        """The sentence that names the connector and its latest error."""
        return failure_sentence(self.name, self.latest_error or "")


def failure_sentence(connector: str, error: str) -> str:
    """The sentence that a connector failed with an error, which may name the connector itself."""
    name = f"Connector '{connector}'"
    return error if error.startswith(name) else f"{name} failed: {error}"


def configured_status(home: Home, table: TableRef, stream: StreamConfig) -> ConnectorStatus:
    """The status of the stream of a table config, which is paused with its table."""
    serving, half = home.catalog.serving, table.half(Half.REALTIME)
    pause, ingestion = serving.pauses().get(table.name), serving.ingestions().get(table.name)
    state, detail = "RUNNING", ingestion.detail if ingestion is not None else None
    if pause is not None:
        state, detail = "PAUSED", pause.comment or "by a user, with its table"
    elif ingestion is not None and ingestion.state in _STATES:
        state = _STATES[ingestion.state]
    others = bookkeeping(table.name)
    return ConnectorStatus(
        name=stream.connector,
        labels=(),
        transport=_TRANSPORTS[KafkaInput],
        state=state,
        detail=detail,
        waits_for=(),
        records=sum(file.rows for file in half.files if file.segment not in others),
        bytes=sum(file.bytes for file in half.files),
        errors=half.realtime.rejected,
        end_of_input=False,
        lag=ingestion.behind if ingestion is not None else None,
        latest_error=detail if state == "FAILED" else None,
    )


class Standing:
    """The states of one table's connectors at the moment of a view."""

    def __init__(self, home: Home, table: TableRef, view: ConnectorView) -> None:
        self._home, self._table, self._spec, self._view = home, table, table.spec, view
        self._waits = waits_for(self._spec.connectors)

    def status(self, one: Connector, *, ask_kafka: bool) -> ConnectorStatus:
        """The status of a connector, with its counts."""
        view = self._view
        state, detail = self.state(one)
        progress, record = view.progress(one.name), view.known(one.name)
        records, size, errors, lag = 0, 0, record.errors, None
        if isinstance(one.transport, KafkaInput):
            records, errors = view.live_rows(), errors + view.realtime.realtime.rejected
            size = sum(file.bytes for file in view.realtime.files)
            lag, absent = self._lag() if ask_kafka and view.is_started(one) else (None, None)
            detail = absent if detail is None and state == "RUNNING" else detail
        elif progress is not None:
            records, size = progress.rows, progress.bytes
        return ConnectorStatus(
            name=one.name,
            labels=one.labels,
            transport=_TRANSPORTS.get(type(one.transport), type(one.transport).__name__),
            state=state,
            detail=detail,
            waits_for=tuple(sorted(self._waits[one.name])),
            records=records,
            bytes=size,
            errors=errors,
            end_of_input=view.is_done(one),
            lag=lag,
            latest_error=record.error or (detail if state == "FAILED" else None),
        )

    def state(self, one: Connector) -> tuple[str, str | None]:
        """The state of a connector, and the reason in words."""
        view = self._view
        waiting = view.open_before(self._waits[one.name])
        record, progress = view.known(one.name), view.progress(one.name)
        if view.is_done(one) and progress is not None:
            made = isinstance(one.transport, Datagen)
            return "COMPLETED", f"{progress.rows} records" + ("" if made else f" from {progress.pieces} files")
        if view.is_paused(one):
            also = f"; it also waits for {_named(waiting)}" if waiting and not view.is_started(one) else ""
            return "PAUSED", f"until: hybrid connector start {self._spec.name} {one.name}{also}"
        if waiting and not view.is_started(one):
            errors = {name: view.known(name).error for name in waiting}
            failed = [failure_sentence(name, error) for name, error in errors.items() if error]
            return "WAITING", "; ".join(failed) or f"starts after {_named(waiting)}"
        if record.error is not None:
            return "FAILED", record.error
        stopped = self._stopped() if view.is_started(one) else None
        if stopped is not None:
            return "FAILED", stopped
        if progress is not None and isinstance(one.transport, Datagen):
            return "RUNNING", f"{progress.rows} records so far"
        if progress is not None and progress.is_complete and isinstance(one.transport, FileInput):
            count = len(progress.source.get("known", ()))
            return "RUNNING", f"follows, {count} file{'s' * (count != 1)} so far"
        if progress is not None and progress.is_complete:
            return "RUNNING", f"follows, up to version {progress.source.get('version')}"
        if progress is not None:
            return "RUNNING", f"{progress.pieces} of {progress.pieces_all} files"
        return "RUNNING", None

    def _stopped(self) -> str | None:
        """Why a server's ingestion of the stream has stopped, if it reported that within the last minute."""
        ingestion = self._home.catalog.serving.ingestions().get(self._spec.name)
        if ingestion is None or ingestion.state != "STOPPED" or self._home.now_ms() - ingestion.at_ms > _LATELY_MS:
            return None
        return ingestion.detail

    def _lag(self) -> tuple[int | None, str | None]:
        """The number of offsets in Kafka that are not committed, and the topics that do not exist yet, in words."""
        from hybrid.kafka.streams import absent_words, require_topics
        from hybrid.table.boundary import current_keys

        stream = self._spec.stream
        assert stream is not None
        state = self._table.half(Half.REALTIME).realtime
        try:
            view = require_topics(stream, state.known_ids(stream), CHECK_TIMEOUT_MS)
        except HybridError:
            return None, None
        keys = current_keys(stream, view.ends, state.offsets)
        lag = sum(max(0, end - state.offsets.get(keys[place], 0)) for place, end in view.ends.items())
        return lag, absent_words(stream, view.topic_ids)


def _named(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
