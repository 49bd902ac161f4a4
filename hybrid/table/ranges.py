"""Planning which offsets the next batch reads: pure arithmetic on half-open ranges of offsets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hybrid.table.boundary import Offsets, PartitionKey


@dataclass(frozen=True)
class OffsetRange:
    """Offsets [`start`, `end`) of one partition. Transactions leave holes, so this is never a count of rows."""

    key: PartitionKey
    start: int
    end: int


def plan_ranges(committed: Offsets, stable_ends: Offsets, batch_offsets_max: int) -> list[OffsetRange]:
    """The ranges that the next batch reads, partitions in order, at most `batch_offsets_max` offsets in all.

    `committed` holds the next offset to read of each known partition; a partition that is not in it is new and is read
    from 0. `stable_ends` are Kafka's last stable offsets (exclusive). The bound is shared evenly. What a short
    partition does not use goes to the longer ones, so no partition starves another.
    """
    pending = {key: (committed.get(key, 0), end) for key, end in stable_ends.items() if end > committed.get(key, 0)}
    shares = share_evenly({key: end - start for key, (start, end) in pending.items()}, batch_offsets_max)
    return [OffsetRange(key, pending[key][0], pending[key][0] + shares[key]) for key in sorted(shares) if shares[key]]


def share_evenly(wanted: Mapping[PartitionKey, int], total: int) -> dict[PartitionKey, int]:
    """Divides `total` evenly, no share larger than wanted; a total below one each still serves the first partitions."""
    shares: dict[PartitionKey, int] = {}
    remaining = total
    for position, key in enumerate(sorted(wanted, key=lambda key: (wanted[key], key))):
        partitions_left = len(wanted) - position
        shares[key] = min(wanted[key], max(remaining // partitions_left, 1 if remaining > 0 else 0))
        remaining -= shares[key]
    return shares


def advance(committed: Offsets, ranges: list[OffsetRange]) -> dict[PartitionKey, int]:
    """The committed offsets after a batch over `ranges`: where each range ended, rows or holes alike."""
    return {**committed, **{offset_range.key: offset_range.end for offset_range in ranges}}
