"""The progress and pauses of a table's connectors at one moment, from the halves and the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hybrid.catalog.connectors import ConnectorRecord
from hybrid.config.connectors import Connector, KafkaInput, live_connector
from hybrid.config.table_config import Half
from hybrid.table.boundary import TopicPartition, place_of

if TYPE_CHECKING:
    from hybrid.flow.connectors.history import HistoryProgress
    from hybrid.home.home import Home
    from hybrid.home.table_ref import TableRef


class ConnectorView:
    """The connectors of one table at the moment the view is created."""

    def __init__(self, table: TableRef, records: Mapping[str, ConnectorRecord]) -> None:
        self._spec, self.realtime = table.spec, table.half(Half.REALTIME)
        self._offline = table.half(Half.OFFLINE) if Half.OFFLINE in table.spec.halves else None
        self._records = records

    def known(self, name: str) -> ConnectorRecord:
        """The catalog's record of a connector."""
        return self._records.get(name, ConnectorRecord())

    def progress(self, name: str) -> HistoryProgress | None:
        """The progress of a connector's load; None before it began, and for the stream."""
        from hybrid.flow.connectors.history import HistoryProgress

        return HistoryProgress.of(self._offline, name) if self._offline is not None else None

    def is_paused(self, one: Connector) -> bool:
        """Whether a user paused the connector, or its definition does."""
        return _is_paused(one, self.known(one.name))

    def is_done(self, one: Connector) -> bool:
        """Whether the connector has completed."""
        progress = self.progress(one.name)
        return progress is not None and progress.done

    def is_started(self, one: Connector) -> bool:
        """Whether the connector is the stream, and REALTIME reads it."""
        stream = self._spec.stream
        return stream is not None and stream.connector == one.name and self.realtime.realtime.reads(stream)

    def open_before(self, names: frozenset[str]) -> list[str]:
        """The connectors of `names` that have not completed."""
        return [each.name for each in self._spec.connectors if each.name in names and not self.is_done(each)]

    def live_rows(self) -> int:
        """The number of rows in REALTIME."""
        from hybrid.table.columns import bookkeeping

        others = bookkeeping(self._spec.name)
        return sum(file.rows for file in self.realtime.files if file.segment not in others)


def pause_offsets(home: Home, table: str, connectors: tuple[Connector, ...]) -> Mapping[TopicPartition, int] | None:
    """The offsets, by partition, at which a pause stops a table's stream; None when it is not paused."""
    live = live_connector(connectors)
    if live is None or not isinstance(live.transport, KafkaInput):
        return None
    topics = live.transport.topics
    record = home.catalog.connectors.of(table).get(live.name, ConnectorRecord())
    if not _is_paused(live, record):
        return None
    return {place_of(topics, text): offset for text, offset in (record.pause_offsets or {}).items()}


def _is_paused(one: Connector, record: ConnectorRecord) -> bool:
    return one.paused if record.paused is None else record.paused
