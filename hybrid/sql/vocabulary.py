"""The words of the dialect for completion and highlighting, in the shell and in the console: keywords, functions."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from functools import cache

from hybrid.errors import VALIDATION, QueryError
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
# What begins a clause: misspelled, it is read as a name or an alias, and the parser fails at it or behind it.
_CLAUSES = sorted(word_set("SELECT FROM WHERE GROUP HAVING ORDER LIMIT OFFSET JOIN UNION WITH EXPLAIN"))
_ALIKE_MIN = 0.75
_PLAIN_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
SET_OPTIONS = ("asOf", "dropResults", "plan", "timeoutMs")
_OWN_OPTIONS = {name.lower(): name for name in (*SET_OPTIONS, "engine")}
# Names of types that CAST takes.
TYPE_NAMES = word_set(
    """
    BIGINT BIG_DECIMAL BOOLEAN BYTES DATE DOUBLE FLOAT INT INTEGER JSON LONG STRING TIMESTAMP VARCHAR
    """
)


def option_meant(name: str) -> str | None:
    """The option of ours that has this name, or is spelled like it; None for another one."""
    return _OWN_OPTIONS.get(name.lower().replace("_", "").replace("-", ""))


def refuse_misspelled_options(names: Iterable[str]) -> None:
    """QueryError (700) for another spelling of an option of ours, such as `as_of`: without it, the answer is wrong."""
    for name in names:
        meant = option_meant(name)
        if meant is not None and meant.lower() != name.lower():
            raise QueryError(f"'{name}' is no option. Did you mean '{meant}'?", pinot_code=VALIDATION)


def spelled_name(name: str) -> str:
    """A name as a statement has it: in quotes where it would be read as something else."""
    is_plain = _PLAIN_NAME.fullmatch(name) is not None and name.upper() not in RESERVED
    return name if is_plain else '"' + name.replace('"', '""') + '"'


def misspelled_clause(words: Iterable[str]) -> str | None:
    """A question for the first of `words` that looks like a misspelled keyword of a clause; None without one."""
    for word in words:
        known = [clause for clause in _CLAUSES if abs(len(clause) - len(word)) <= 1]
        close = difflib.get_close_matches(word.upper(), known, n=1, cutoff=_ALIKE_MIN)
        if word.isalpha() and word.upper() not in RESERVED and close:
            return f"Did you mean {close[0]} instead of '{word}'?"
    return None


@cache
def function_names() -> tuple[str, ...]:
    """The functions of statements: Pinot's and those of DuckDB that are allowed, in order."""
    from hybrid.sql import aggregates, arithmetic, functions, times
    from hybrid.sql.allowed import CALLABLE

    return tuple(sorted({*CALLABLE, *aggregates.RULES, *times.RULES, *functions.SCALARS, *arithmetic.NAMES}))
