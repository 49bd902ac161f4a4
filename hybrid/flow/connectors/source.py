"""What history is read from: pieces in an order that never changes, so that a load goes on where it stopped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from hybrid.errors import SpecError
from hybrid.spec.table_config import TableSpec
from hybrid.table.columns import PREFIX

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The columns of a frame beside the source's own: which piece a record is of, and its place in it.
PIECE, PLACE = f"{PREFIX}piece", f"{PREFIX}place"

# How tables that were written from Kafka name where each row came from; our own do it by the first.
_COORDINATES = (
    ("_hy_topic", "_hy_partition", "_hy_offset"),
    ("topic", "partition", "offset"),
    ("kafka_topic", "kafka_partition", "kafka_offset"),
    ("_kafka_topic", "_kafka_partition", "_kafka_offset"),
    ("__topic", "__partition", "__offset"),
    ("_topic", "_partition", "_offset"),
)


@dataclass(frozen=True)
class Piece:
    """A part of a source that is read whole: a file. `rows` is None where nobody counts them without reading."""

    name: str
    rows: int | None
    bytes: int


class Source(Protocol):
    """A source as it was at one moment."""

    @property
    def pinned(self) -> Mapping[str, object]:
        """What names that moment, as JSON: it is kept with what has been loaded."""

    @property
    def pieces(self) -> Sequence[Piece]:
        """Its pieces."""

    @property
    def columns(self) -> Sequence[str]:
        """The names of its records' fields."""

    def frame(self, spark: SparkSession, numbers: Sequence[int], only: Sequence[str] | None = None) -> DataFrame:
        """The records of some pieces, with PIECE and PLACE; `only` some of their fields."""


def coordinates(names: Iterable[str]) -> tuple[str, str, str] | None:
    """The columns of a source that hold Kafka's topic, partition and offset; None where it has none."""
    by_lower = {name.lower(): name for name in names}
    for one in _COORDINATES:
        if all(name in by_lower for name in one):
            topic, partition, offset = (by_lower[name] for name in one)
            return topic, partition, offset
    return None


def check_columns(spec: TableSpec, source: Source, name: str) -> None:
    """SpecError when the source lacks a column that every row must have."""
    there = {one.lower() if spec.ignores_case else one for one in source.columns}
    needed = {*spec.primary_key, *([spec.time_column] if spec.time_column else [])}
    needed |= {field.name for field in spec.schema.fields if field.is_required}
    missing = [field.name for field in spec.schema.fields if field.name in needed - there]
    if missing:
        raise SpecError(
            f"Connector '{name}': the source has no column {', '.join(missing)}, which table '{spec.name}' needs in "
            f"every row. It has: {', '.join(source.columns)}. Nothing was loaded.",
            hint="Make the column nullable or give it a DEFAULT, or load from a source that has it.",
        )
