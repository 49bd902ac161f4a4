"""Refuses Groovy scripts. For a script that is a simple expression, the error contains the equivalent SQL."""

from __future__ import annotations

import re
from collections.abc import Callable

_SCRIPT = re.compile(r"\s*groovy\s*\(\s*\{(.*)\}\s*(?:,[^{}]*)?\)\s*", re.IGNORECASE | re.DOTALL)
_JOINED = re.compile(r"(\w+)\s*\+\s*['\"]([^'\"]*)['\"]\s*\+\s*(\w+)")
# Rewrites of Groovy's syntax to SQL, in the order in which they are applied.
_REWRITES = (
    (r"(\w+)\s*==\s*null\b", r"\1 IS NULL"),
    (r"(\w+)\s*!=\s*null\b", r"\1 IS NOT NULL"),
    (r"==", "="),
    (r"!=", "<>"),
    (r"&&", "AND"),
    (r"\|\|", "OR"),
    (r"\"([^\"']*)\"", r"'\1'"),
    (r"(\w+)\.toUpperCase\(\)", r"upper(\1)"),
    (r"(\w+)\.toLowerCase\(\)", r"lower(\1)"),
    (r"(\w+)\.trim\(\)", r"trim(\1)"),
    (r"(\w+)\.(?:length|size)\(\)", r"length(\1)"),
    (r"(\w+)\.reverse\(\)", r"reverse(\1)"),
    (r"(\w+)\.(startsWith|endsWith|contains)\(([^()]*)\)", r"\2(\1, \3)"),
    (r"(\w+)\.substring\(([^()]*)\)", r"substr(\1, \2)"),
    (r"^([^?]+)\?([^?:]+):([^?:]+)$", r"CASE WHEN \1 THEN \2 ELSE \3 END"),
)


def check_no_script(text: str, parse_sql: Callable[[str], object]) -> None:
    """ValueError when `text` is a Groovy script, with the equivalent SQL of a simple script.

    `parse_sql` raises ValueError for invalid SQL, which is not suggested.
    """
    match = _SCRIPT.fullmatch(text)
    if match is not None:
        sql = _as_sql(match[1].strip().removeprefix("return ").rstrip("; "), parse_sql)
        instead = f'; write "{sql}"' if sql else "; write it with Pinot's built-in functions"
        raise ValueError(f"Groovy scripts are not run{instead}")


def _as_sql(script: str, parse_sql: Callable[[str], object]) -> str | None:
    joined = _JOINED.fullmatch(script)
    if joined is not None:
        return f"concat({joined[1]}, {joined[3]}, '{joined[2]}')"
    sql = script
    for pattern, replacement in _REWRITES:
        sql = re.sub(pattern, replacement, sql)
    sql = re.sub(r"\s+", " ", sql).strip()
    # Groovy's plus may join texts, and that of SQL does not.
    if "'" in sql and "+" in sql:
        return None
    try:
        parse_sql(sql)
    except ValueError:
        return None
    return sql
