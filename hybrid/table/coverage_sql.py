"""Boundaries as SQL predicates over stored rows. Spark and DuckDB read the same text, so they cannot disagree."""

from __future__ import annotations

from hybrid.table.boundary import INFINITE, Boundary, Offsets, PartitionKey
from hybrid.table.columns import CONNECTOR, EPOCH, OFFSET, PARTITION, TIME, TOPIC
from hybrid.table.effective import EffectiveBoundary


def covered_sql(boundary: Boundary) -> str:
    """True for the realtime rows that the offline half has taken over; never null."""
    return _covered(EffectiveBoundary(boundary.time_ms, boundary.frontier))


def may_wait_sql(boundary: Boundary, committed: Offsets) -> str:
    """True for every realtime row that the offline half has not taken over, and for some others; never null.

    The comparisons are bare, so that readers skip files by their statistics. `committed` names every partition.
    """
    if boundary.time_ms in (None, INFINITE):
        return "TRUE"
    lowest = lowest_waiting(boundary, committed)
    beyond = (f"({PARTITION} = {number} AND {OFFSET} >= {offset})" for number, offset in sorted(lowest.items()))
    return f"({' OR '.join([f'{TIME} >= {boundary.time_ms}', *beyond])})"


def lowest_waiting(boundary: Boundary, committed: Offsets) -> dict[int, int]:
    """The lowest committed offset that is not taken over, by partition number; partitions without any are absent."""
    lowest: dict[int, int] = {}
    for key, end in committed.items():
        taken = boundary.frontier.get(key, 0)
        if taken < end:
            lowest[key.partition] = min(taken, lowest.get(key.partition, taken))
    return lowest


def visible_realtime_sql(boundary: EffectiveBoundary) -> str:
    """True for the realtime and tail rows that are visible; never null."""
    return f"NOT {_covered(boundary)}"


def visible_offline_sql(boundary: EffectiveBoundary) -> str:
    """True for the offline rows that are visible; never null, because every row has a time where times restrict."""
    if not boundary.restricts_offline:
        return "TRUE"
    # A bare comparison, so that DuckDB can skip row groups by it.
    return "FALSE" if boundary.limit_ms is None else f"{TIME} < {boundary.limit_ms}"


def frontier_sql(frontier: Offsets) -> str:
    """F of a row's partition: 0 where the frontier does not name it."""
    cases = " ".join(f"WHEN {_is_partition(key)} THEN {offset}" for key, offset in sorted(frontier.items()))
    return f"(CASE {cases} ELSE 0 END)" if cases else "0"


def below_sql(ends: Offsets) -> str:
    """True for the rows below the end of their partition; never null where rows have offsets."""
    return f"{OFFSET} < {frontier_sql(ends)}"


def _covered(boundary: EffectiveBoundary) -> str:
    if boundary.limit_ms is None:
        return "FALSE"
    # A null time (a table without a time column) lies before an infinite limit.
    before = f"coalesce({TIME} < {boundary.limit_ms}, TRUE)"
    if boundary.time_alone:
        return f"({before})"
    return f"({before} AND {OFFSET} < {frontier_sql(boundary.frontier)})" if boundary.frontier else "FALSE"


def _is_partition(key: PartitionKey) -> str:
    return (
        f"{PARTITION} = {key.partition} AND {EPOCH} = {key.epoch} "
        f"AND {TOPIC} = {_text(key.topic)} AND {CONNECTOR} = {_text(key.connector)}"
    )


def _text(value: str) -> str:
    # Topic and connector names hold no backslash, which Spark and DuckDB would read differently.
    return "'" + value.replace("'", "''") + "'"
