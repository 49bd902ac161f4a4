"""Where nulls stand in what is sorted: a null is larger than any value, as in Pinot and PostgreSQL.

So ASC has them last and DESC first, unless NULLS FIRST or NULLS LAST is written. DuckDB has them last in both.
"""

from __future__ import annotations

from sqlglot import exp

from hybrid.schema.dialect import NULLS_WRITTEN


def order_nulls(tree: exp.Query) -> None:
    """Says in each ORDER BY of `tree` where nulls stand: of results, groups, windows and inside of aggregations."""
    for ordered in tree.find_all(exp.Ordered):
        if ordered.args.get("desc") and not ordered.meta.get(NULLS_WRITTEN):
            ordered.set("nulls_first", True)
