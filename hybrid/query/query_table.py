"""A table as queries see it, and the source of such tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from hybrid.config.table_config import TableSpec
from hybrid.lake.layout import TableLayout
from hybrid.table.boundary import PartitionKey, TopicPartition


@dataclass(frozen=True)
class QueryTable:
    """A table as a query needs it: its definition, its folders, and the address of its broker (None: as configured).

    `pause_offsets`: the offsets, by partition, at which a pause holds its stream; None without a pause.
    """

    spec: TableSpec
    layout: TableLayout
    brokers: str | None = None
    pause_offsets: Mapping[TopicPartition, int] | None = None

    def is_read(self, key: PartitionKey, offset: int) -> bool:
        """Whether a pause lets the row of the stream at this offset be shown."""
        return self.pause_offsets is None or offset < self.pause_offsets.get(key.place, 0)

    def shown(self, positions: Mapping[PartitionKey, int]) -> dict[PartitionKey, int]:
        """Positions in the stream, capped at the offsets of a pause."""
        stop = self.pause_offsets
        return {key: at if stop is None else min(at, stop.get(key.place, 0)) for key, at in positions.items()}


class TableSource(Protocol):
    """The tables that statements can name."""

    def names(self) -> list[str]:
        """All tables."""

    def open(self, name: str) -> QueryTable:
        """The table of exactly that name."""
