"""The boundary as a SQL predicate over stored rows. Spark and DuckDB read the same text, so they cannot disagree."""

from __future__ import annotations

from hybrid.table.boundary import Boundary, PartitionKey
from hybrid.table.columns import CONNECTOR, EPOCH, OFFSET, PARTITION, TIME, TOPIC


def covered_sql(boundary: Boundary) -> str:
    """True for the realtime rows that the offline half has taken over; never null.

    A null time (a table without a time column) lies before an infinite T.
    """
    if boundary.time_ms is None or not boundary.frontier:
        return "FALSE"
    return f"(coalesce({TIME} < {boundary.time_ms}, TRUE) AND {OFFSET} < {frontier_sql(boundary)})"


def frontier_sql(boundary: Boundary) -> str:
    """F of a row's partition: 0 where the frontier names none."""
    cases = " ".join(f"WHEN {_is_partition(key)} THEN {offset}" for key, offset in sorted(boundary.frontier.items()))
    return f"(CASE {cases} ELSE 0 END)" if cases else "0"


def _is_partition(key: PartitionKey) -> str:
    return (
        f"{PARTITION} = {key.partition} AND {EPOCH} = {key.epoch} "
        f"AND {TOPIC} = {_text(key.topic)} AND {CONNECTOR} = {_text(key.connector)}"
    )


def _text(value: str) -> str:
    # Topic and connector names hold no backslash, which Spark and DuckDB would read differently.
    return "'" + value.replace("'", "''") + "'"
