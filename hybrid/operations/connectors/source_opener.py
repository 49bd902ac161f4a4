"""Opening the source of a connector: files, a Delta table or generated rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hybrid.config.connectors import Connector, Datagen, DeltaInput, FileInput

if TYPE_CHECKING:
    from hybrid.config.table_config import TableSpec
    from hybrid.flow.connectors.source import Source


class SourceOpener:
    """Opens the source of a connector. `check_handover` is called with it before anything is loaded.

    `now_ms` is when the round began, epoch ms: with a moving clock a round might never end.
    """

    def __init__(
        self, connector: Connector, spec: TableSpec, now_ms: int, check_handover: Callable[[Connector, Source], None]
    ) -> None:
        self._connector, self._spec, self._now_ms = connector, spec, now_ms
        self._check_handover = check_handover

    @property
    def rows_max(self) -> int:
        """The approximate number of rows per commit."""
        from hybrid.flow.connectors.history import CHUNK_ROWS_MAX

        return min(CHUNK_ROWS_MAX, self._connector.max_batch_size or CHUNK_ROWS_MAX)

    def begin(self) -> Source:
        """The newest source, pinned."""
        source = self._open(None)
        self._check_handover(self._connector, source)
        return source

    def resume(self, pinned: Mapping[str, Any]) -> Source:
        """The source as it was pinned when the load began."""
        return self._open(pinned)

    def after(self, pinned: Mapping[str, Any]) -> Source | None:
        """What a followed source has after the pinned part; None when there is nothing new."""
        from hybrid.flow.connectors.datagen_source import open_datagen_after
        from hybrid.flow.connectors.delta_source import open_delta_after
        from hybrid.flow.connectors.file_source import open_files_after

        transport, spec = self._connector.transport, self._spec
        if isinstance(transport, FileInput):
            return open_files_after(transport, self._connector.format, spec, pinned, self.rows_max)
        if isinstance(transport, Datagen):
            return open_datagen_after(transport, spec, pinned, self._now_ms)
        if isinstance(transport, DeltaInput):
            return open_delta_after(transport, pinned, self._connector.says_deletes and not spec.primary_key)
        return None

    def _open(self, pinned: Mapping[str, Any] | None) -> Source:
        from hybrid.flow.connectors.datagen_source import open_datagen
        from hybrid.flow.connectors.delta_source import open_delta
        from hybrid.flow.connectors.file_source import open_files

        transport, spec = self._connector.transport, self._spec
        if isinstance(transport, FileInput):
            return open_files(transport, self._connector.format, spec, pinned, self.rows_max)
        if isinstance(transport, Datagen):
            return open_datagen(transport, spec, pinned, self._now_ms, self._connector.max_batch_size)
        assert isinstance(transport, DeltaInput)
        return open_delta(transport, pinned)
