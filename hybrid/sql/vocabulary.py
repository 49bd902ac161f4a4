"""The words of the dialect for completion and highlighting, in the shell and in the console: keywords, functions."""

from __future__ import annotations

from functools import cache

from hybrid.sql.allowed import word_set

KEYWORDS = word_set(
    """
    ALL AND ANY AS ASC BETWEEN BY CASE CAST CROSS DESC DISTINCT ELSE END EXCEPT EXISTS EXPLAIN FALSE FILTER FIRST FOR
    FROM FULL GROUP HAVING IN INNER INTERSECT INTERVAL IS JOIN LAST LEFT LIKE LIMIT NOT NULL NULLS OFFSET ON OPTION OR
    ORDER OUTER OVER PARTITION PLAN QUALIFY RESET RIGHT ROWS SELECT SET THEN TRUE UNION USING VALUES WHEN WHERE WINDOW
    WITH
    """
)
SET_OPTIONS = ("asOf", "dropResults", "plan", "timeoutMs")
# Names of types that CAST takes.
TYPE_NAMES = word_set(
    """
    BIGINT BIG_DECIMAL BOOLEAN BYTES DATE DOUBLE FLOAT INT INTEGER JSON LONG STRING TIMESTAMP VARCHAR
    """
)


@cache
def function_names() -> tuple[str, ...]:
    """The functions of statements: Pinot's and those of DuckDB that are allowed, in order."""
    from hybrid.sql import aggregates, arithmetic, functions, times
    from hybrid.sql.allowed import CALLABLE

    return tuple(sorted({*CALLABLE, *aggregates.RULES, *times.RULES, *functions.SCALARS, *arithmetic.NAMES}))
