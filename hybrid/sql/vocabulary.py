"""The words of the dialect for completion and highlighting, in the shell and in the console: keywords, functions."""

from __future__ import annotations

import re
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
# Words that the grammar takes for its own where a name stands, beside the keywords that are highlighted.
RESERVED = KEYWORDS | word_set(
    """
    ALTER CREATE CURRENT_CATALOG CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER DESCRIBE DROP FETCH FORCE GLOB
    GRANT ILIKE INSERT INSTALL INTO LAMBDA LATERAL LOCALTIME LOCALTIMESTAMP NOTNULL ONLY PARTITIONED_BY POSITIONAL
    REGEXP RETURNING REVOKE RLIKE ROLLBACK SESSION_USER SUMMARIZE TABLE TABLESAMPLE UNCACHE USER XOR
    """
)
_PLAIN_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
SET_OPTIONS = ("asOf", "dropResults", "plan", "timeoutMs")
# Names of types that CAST takes.
TYPE_NAMES = word_set(
    """
    BIGINT BIG_DECIMAL BOOLEAN BYTES DATE DOUBLE FLOAT INT INTEGER JSON LONG STRING TIMESTAMP VARCHAR
    """
)


def spelled_name(name: str) -> str:
    """A name as a statement has it: in quotes where it would be read as something else."""
    is_plain = _PLAIN_NAME.fullmatch(name) is not None and name.upper() not in RESERVED
    return name if is_plain else '"' + name.replace('"', '""') + '"'


@cache
def function_names() -> tuple[str, ...]:
    """The functions of statements: Pinot's and those of DuckDB that are allowed, in order."""
    from hybrid.sql import aggregates, arithmetic, functions, times
    from hybrid.sql.allowed import CALLABLE

    return tuple(sorted({*CALLABLE, *aggregates.RULES, *times.RULES, *functions.SCALARS, *arithmetic.NAMES}))
