"""Upsert over the whole table (R5): the order in which rows of one key win, as columns.

On an upsert table the winner is the row that is greatest by the comparison value, then by arrival; on a dedup table the
one that is least by arrival: the first. The same order decides in DuckDB, in Spark and in the oracle, which is why it
stands here once. A delete marker that wins hides its key.
"""

from __future__ import annotations

from collections.abc import Callable

from hybrid.config.table_config import TableSpec
from hybrid.table.columns import ARRIVAL

# A replacement's rows arrive after every offset committed at its swap: they carry the highest Kafka timestamp committed
# then, and a connector name that sorts behind every real one (connector names begin with a letter or digit).
REPLACEMENT_CONNECTOR = "~replacement"


def winning_order(spec: TableSpec) -> tuple[str, ...]:
    """Column names by which the winner of a key is greatest, or least where the `first_wins`, most significant first.

    Tables that pick one only.
    """
    assert spec.picks_winners and spec.upsert is not None
    return (spec.upsert.comparison_column, *ARRIVAL)


def first_wins(spec: TableSpec) -> bool:
    """Whether the least by the order wins, a null before all: on a dedup table."""
    return spec.upsert is not None and spec.upsert.first_wins


def winners_first_sql(spec: TableSpec, identifier: Callable[[str], str]) -> str:
    """What follows ORDER BY so that the winner of a key comes first, in the SQL of DuckDB and Spark alike."""
    how = "ASC NULLS FIRST" if first_wins(spec) else "DESC NULLS LAST"
    return ", ".join(f"{identifier(name)} {how}" for name in dict.fromkeys(winning_order(spec)))


def replacement_topic(act_number: int) -> str:
    """The topic column of a replacement's rows: later acts sort behind earlier ones."""
    return f"act-{act_number:012d}"
