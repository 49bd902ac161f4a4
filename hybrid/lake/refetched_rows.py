"""What a stream still holds of the committed offsets, read once more: ingestion reads it, backfills bring it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hybrid.table.boundary import PartitionKey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class RefetchedRows:
    """The messages of a stream up to its committed offsets, from `held_from` on, by partition.

    `frame` has the stored columns of REALTIME; a message that does not convert is a rejected row, and one that the
    filter drops is not there.
    """

    frame: DataFrame
    held_from: Mapping[PartitionKey, int]
