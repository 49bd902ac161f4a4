"""`_metadata` in a flow's SQL: what Spark knows of the file that a row comes from.

Spark hides it from `*` and does not pass it on through views, by which a query reads its files. So the views have it
under a name of our own, which the query reads, and which is taken off its rows.
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
    """The query that reads METADATA where it names `_metadata`; None for one that does not."""
    found = [match for match in _WORD.finditer(text) if match["word"]]
    if not found:
        return None
    parts, at = [], 0
    for match in found:
        parts += [text[at : match.start()], METADATA, f" AS {match[0]}" if _is_item(text, match) else ""]
        at = match.end()
    return "".join([*parts, text[at:]])


def is_narrowed(text: str) -> bool:
    """Whether the query compares whole rows, among which `*` would have METADATA too."""
    bare = _WORD.sub(lambda match: match["word"] or " ", text)
    return "*" in bare and bool(_NARROWING.search(bare))


def _is_item(text: str, match: re.Match[str]) -> bool:
    """Whether it is selected as it is, so that the column has its name."""
    before = text[: match.start()]
    clauses: list[str] = _CLAUSE.findall(before)
    is_selected = bool(clauses) and clauses[-1].upper() == "SELECT"
    return is_selected and bool(_ITEM.search(before)) and bool(_ITEM_ENDS.match(text, match.end()))
