"""The sources of history: pieces in an order that never changes, so that a load continues where it stopped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from hybrid.config.table_config import TableSpec
from hybrid.errors import SpecError
from hybrid.table.columns import PREFIX

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The columns of a frame beside the source's own: the number of a record's piece, and its position there.
PIECE, PLACE = f"{PREFIX}piece", f"{PREFIX}place"

BYTES_PER_ROW = 50  # an estimate for files without a row count

# Names that tables written from Kafka give a row's coordinates; our own tables use the first.
_COORDINATES = (
    ("_hy_topic", "_hy_partition", "_hy_offset"),
    ("topic", "partition", "offset"),
    ("kafka_topic", "kafka_partition", "kafka_offset"),
    ("_kafka_topic", "_kafka_partition", "_kafka_offset"),
    ("__topic", "__partition", "__offset"),
    ("_topic", "_partition", "_offset"),
)


@dataclass(frozen=True)
class SourcePiece:
    """A part of a source that is read whole: a file. `rows` is None when counting them would need reading."""

    name: str
    rows: int | None
    bytes: int


@dataclass(frozen=True)
class StagedBatch:
    """Staged rows, without segment names. `offsets` are Kafka's highest, by `topic/partition`.

    `deletes` are among the `rows`.
    """

    frame: DataFrame
    rows: int
    deletes: int
    offsets: dict[str, int]


class Source(Protocol):
    """A source as of one moment."""

    @property
    def pinned(self) -> Mapping[str, object]:
        """The identity of that moment, as JSON. It is stored with the loaded rows."""

    @property
    def pieces(self) -> Sequence[SourcePiece]:
        """Its pieces."""

    @property
    def is_last(self) -> bool:
        """Whether nothing follows after it."""

    def check(self, spec: TableSpec, connector: str) -> None:
        """SpecError when it lacks a column that every row of the table needs, as far as that is known."""

    def stage(
        self, spark: SparkSession, spec: TableSpec, connector: str, numbers: Sequence[int], to: Path
    ) -> StagedBatch:
        """Converts the records of some pieces, in `to`. DataError at the first that is no row of the table."""

    def highest_offsets(self, spark: SparkSession) -> dict[str, int] | None:
        """Kafka's highest offsets in it, by `topic/partition`, without loading it; None when it has none."""


def coordinates(names: Iterable[str]) -> tuple[str, str, str] | None:
    """The columns of a source that hold Kafka's topic, partition and offset; None when it has none."""
    by_lower = {name.lower(): name for name in names}
    for candidate in _COORDINATES:
        if all(name in by_lower for name in candidate):
            topic, partition, offset = (by_lower[name] for name in candidate)
            return topic, partition, offset
    return None


def raise_to(known: dict[str, int], others: Mapping[str, int]) -> None:
    """Raises offsets, by `topic/partition`, where the offset in `others` is higher."""
    for key, offset in others.items():
        known[key] = max(offset, known.get(key, offset))


def check_columns(spec: TableSpec, names: Sequence[str], connector: str) -> None:
    """SpecError when the columns `names` lack a column that every row needs."""
    there = {name.lower() if spec.ignores_case else name for name in names}
    needed = {*spec.primary_key, *([spec.time_column] if spec.time_column else [])}
    needed |= {field.name for field in spec.schema.fields if field.is_required}
    missing = [field.name for field in spec.schema.fields if field.name in needed - there]
    if missing:
        raise SpecError(
            f"Connector '{connector}': the source has no column {', '.join(missing)}, which table '{spec.name}' needs "
            f"in every row. It has: {', '.join(names)}. Nothing was loaded.",
            hint="Make the column nullable or give it a DEFAULT, or load from a source that has it.",
        )
