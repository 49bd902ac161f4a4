"""`_metadata` in a flow's SQL: Spark's metadata of a row's file.

Spark hides it from `*`, and views, through which a query reads its files, do not pass it on. So the views have it
under a name of our own. The query reads that name, and it is removed from the query's rows.
"""

from __future__ import annotations

import re

from hybrid.flow.declared.reader import METADATA

_WORD = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"|(?P<word>(?<![\w`])`?_metadata`?(?![\w`]))",
    re.DOTALL | re.IGNORECASE,
)
_CLAUSE = re.compile(r"\b(SELECT|FROM|WHERE|GROUP\s+BY|ORDER\s+BY|HAVING|ON|PARTITION\s+BY)\b", re.IGNORECASE)
_ITEM = re.compile(r"(?:\bSELECT(?:\s+(?:DISTINCT|ALL))?|,|\.)\s*$", re.IGNORECASE)
_ITEM_ENDS = re.compile(r"\s*(?:,|FROM\b)", re.IGNORECASE)
_NARROWING = re.compile(
    r"\bDISTINCT\s+(?:\w+\s*\.\s*)?\*|\bUNION\b(?!\s+ALL\b)|\bEXCEPT\b(?!\s*\()|\bINTERSECT\b|\bMINUS\b", re.IGNORECASE
)


def with_metadata(text: str) -> str | None:
    """The query with METADATA instead of `_metadata`; None for a query that does not name it."""
    matches = [match for match in _WORD.finditer(text) if match["word"]]
    if not matches:
        return None
    parts, at = [], 0
    for match in matches:
        parts += [text[at : match.start()], METADATA, f" AS {match[0]}" if _is_item(text, match) else ""]
        at = match.end()
    return "".join([*parts, text[at:]])


def is_narrowed(text: str) -> bool:
    """Whether the query compares whole rows, where `*` would include METADATA."""
    bare = _WORD.sub(lambda match: match["word"] or " ", text)
    return "*" in bare and bool(_NARROWING.search(bare))


def _is_item(text: str, match: re.Match[str]) -> bool:
    """Whether it is selected without an alias or expression, so that the column must keep its name."""
    before = text[: match.start()]
    clauses: list[str] = _CLAUSE.findall(before)
    is_selected = bool(clauses) and clauses[-1].upper() == "SELECT"
    return is_selected and bool(_ITEM.search(before)) and bool(_ITEM_ENDS.match(text, match.end()))
