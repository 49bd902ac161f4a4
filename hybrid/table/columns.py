"""The hidden columns that every stored row carries beside the user's columns, and the physical column order.

User columns may not begin with `_hy_`. Times are epoch milliseconds (UTC).
"""

from __future__ import annotations

PREFIX = "_hy_"

SEGMENT = "_hy_segment"  # string, the partition column: the segment's name
CONNECTOR = "_hy_connector"  # string: the connector that read the row
TOPIC = "_hy_topic"  # string: Kafka topic
EPOCH = "_hy_epoch"  # int: counts resets of offsets and recreations of the topic
PARTITION = "_hy_partition"  # int: Kafka partition
OFFSET = "_hy_offset"  # long: Kafka offset
TIMESTAMP = "_hy_timestamp"  # long, ms: Kafka timestamp
OP = "_hy_op"  # string: `row`, or `delete` for a delete marker; of a rejected row its outcome, see below
TIME = "_hy_time"  # long, ms: the time column's value; null on a table without one
REASON = "_hy_reason"  # string, REALTIME only: why a row was rejected; null for good rows
RAW = "_hy_raw"  # binary, REALTIME only: the rejected row's message as it arrived, see `hybrid.records.messages`

OP_ROW = "row"
OP_DELETE = "delete"

# The outcome of a rejected row. `row`: it is still rejected. `replayed`: a replay wrote its message to the table.
# `filtered`: a replay found that the table's filter drops it. `taken:<plan>`: a backfill has claimed it.
OP_REPLAYED = "replayed"
OP_FILTERED = "filtered"
OP_TAKEN = "taken:"

# The arrival order: the later row has the greater tuple. It breaks ties after the comparison value (R5).
ARRIVAL = (TIMESTAMP, CONNECTOR, TOPIC, EPOCH, PARTITION, OFFSET)

# (name, Spark type) in physical order; Spark itself puts the segment last, as it does every partition column.
HIDDEN: tuple[tuple[str, str], ...] = (
    (SEGMENT, "string"),
    (CONNECTOR, "string"),
    (TOPIC, "string"),
    (EPOCH, "int"),
    (PARTITION, "int"),
    (OFFSET, "bigint"),
    (TIMESTAMP, "bigint"),
    (OP, "string"),
    (TIME, "bigint"),
)
REJECTED_ONLY: tuple[tuple[str, str], ...] = ((REASON, "string"), (RAW, "binary"))


def rejected_segment(table: str) -> str:
    """The partition of REALTIME that holds rejected rows."""
    return f"{table}__rejected"


def files_segment(table: str) -> str:
    """The partition of REALTIME that records which files flows have read, each by its path in REASON."""
    return f"{table}__files"


def bookkeeping(table: str) -> tuple[str, ...]:
    """The partitions of REALTIME that hold no rows of the table."""
    return (rejected_segment(table), files_segment(table))


def rows_sql(table: str) -> str:
    """The predicate over SEGMENT that selects the rows of the table, without bookkeeping."""
    names = ", ".join(f"'{name}'" for name in bookkeeping(table))
    return f"{SEGMENT} NOT IN ({names})"
