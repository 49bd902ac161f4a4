"""The order of nulls: a null is greater than any value, as in Pinot and PostgreSQL.

So nulls are last with ASC and first with DESC, unless NULLS FIRST or NULLS LAST is written. DuckDB has them last in
both.
"""

from __future__ import annotations

from sqlglot import exp

from hybrid.schema.dialect import NULLS_WRITTEN
from hybrid.sql.nodes import nodes_of


def order_nulls(tree: exp.Query) -> None:
    """Sets the order of nulls in each ORDER BY of `tree`: of results, windows and aggregations."""
    for ordered in nodes_of(tree, exp.Ordered):
        if ordered.args.get("desc") and not ordered.meta.get(NULLS_WRITTEN):
            ordered.set("nulls_first", True)
