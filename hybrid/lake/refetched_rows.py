"""Re-fetched rows: messages at committed offsets that the stream still retains. Backfills use them."""

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

    `frame` has the stored columns of REALTIME. A message that does not convert is a rejected row; filtered messages are
    left out.
    """

    frame: DataFrame
    held_from: Mapping[PartitionKey, int]
