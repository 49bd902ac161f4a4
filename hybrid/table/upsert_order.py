"""Upsert over the whole table (R5): the columns whose order decides which row of a key wins.

On an upsert table the row with the greatest comparison value wins, then the latest arrival. On a dedup table the first
arrival wins. DuckDB, Spark and the oracle use this one definition. A delete marker that wins hides its key.
"""

from __future__ import annotations

from collections.abc import Callable

from hybrid.config.table_config import TableSpec
from hybrid.table.columns import ARRIVAL

# A replacement's rows arrive after every offset committed at its swap. They carry the highest Kafka timestamp committed
# then, and a connector name that sorts behind every real one (connector names begin with a letter or digit).
REPLACEMENT_CONNECTOR = "~replacement"


def winning_order(spec: TableSpec) -> tuple[str, ...]:
    """The columns of the order, most significant first: the winner of a key is greatest, or least if `first_wins`.

    Only for tables that pick winners.
    """
    assert spec.picks_winners and spec.upsert is not None
    return (spec.upsert.comparison_column, *ARRIVAL)


def first_wins(spec: TableSpec) -> bool:
    """Whether the least row wins, with nulls first: on a dedup table."""
    return spec.upsert is not None and spec.upsert.first_wins


def winners_first_sql(spec: TableSpec, identifier: Callable[[str], str]) -> str:
    """The terms of an ORDER BY that puts the winner of a key first, in SQL of both DuckDB and Spark."""
    how = "ASC NULLS FIRST" if first_wins(spec) else "DESC NULLS LAST"
    return ", ".join(f"{identifier(name)} {how}" for name in dict.fromkeys(winning_order(spec)))


def replacement_topic(act_number: int) -> str:
    """The topic column of a replacement's rows: later acts sort behind earlier ones."""
    return f"act-{act_number:012d}"
