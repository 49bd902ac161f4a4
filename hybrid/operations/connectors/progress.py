"""What the halves and the catalog say of a table's connectors at one moment."""

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
    """The connectors of one table, as they are when it is made."""

    def __init__(self, table: TableRef, records: Mapping[str, ConnectorRecord]) -> None:
        self._spec, self.realtime = table.spec, table.half(Half.REALTIME)
        self._offline = table.half(Half.OFFLINE) if Half.OFFLINE in table.spec.halves else None
        self._records = records

    def known(self, name: str) -> ConnectorRecord:
        """What the catalog says of one."""
        return self._records.get(name, ConnectorRecord())

    def progress(self, name: str) -> HistoryProgress | None:
        """How far its load has come; None before it began, and of the stream."""
        from hybrid.flow.connectors.history import HistoryProgress

        return HistoryProgress.of(self._offline, name) if self._offline is not None else None

    def is_paused(self, one: Connector) -> bool:
        """Whether a user paused it, or its definition says so."""
        return _is_paused(one, self.known(one.name))

    def is_done(self, one: Connector) -> bool:
        """Whether it came to its end."""
        progress = self.progress(one.name)
        return progress is not None and progress.done

    def is_started(self, one: Connector) -> bool:
        """Whether it is the stream, and is read."""
        stream = self._spec.stream
        return stream is not None and stream.connector == one.name and self.realtime.realtime.reads(stream)

    def open_before(self, names: frozenset[str]) -> list[str]:
        """Those of `names` that have not ended."""
        return [one.name for one in self._spec.connectors if one.name in names and not self.is_done(one)]

    def live_rows(self) -> int:
        """How many rows REALTIME holds."""
        from hybrid.table.columns import bookkeeping

        others = bookkeeping(self._spec.name)
        return sum(file.rows for file in self.realtime.files if file.segment not in others)


def pause_offsets(home: Home, table: str, connectors: tuple[Connector, ...]) -> Mapping[TopicPartition, int] | None:
    """The offsets, by partition, at which a pause holds a table's stream; None when nothing does."""
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
