"""Upsert over the whole table (R5): the order in which rows of one key win, as columns.

The winner is the row that is greatest by the comparison value, then by arrival. The same order decides in DuckDB, in
Spark and in the oracle, which is why it stands here once. A delete marker that wins hides its key.
"""

from __future__ import annotations

from hybrid.spec.table_config import TableSpec
from hybrid.table.columns import ARRIVAL

# A replacement's rows arrive after every offset committed at its swap: they carry the highest Kafka timestamp committed
# then, and a connector name that sorts behind every real one (connector names begin with a letter or digit).
REPLACEMENT_CONNECTOR = "~replacement"


def winning_order(spec: TableSpec) -> tuple[str, ...]:
    """Column names by which the winner of a key is greatest, most significant first. Tables that pick one only."""
    assert spec.picks_winners and spec.upsert is not None
    return (spec.upsert.comparison_column, *ARRIVAL)


def replacement_topic(act_number: int) -> str:
    """The topic column of a replacement's rows: later acts sort behind earlier ones."""
    return f"act-{act_number:012d}"
