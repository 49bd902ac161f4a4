"""The dialect that is read: DuckDB's grammar with Pinot's `$segmentName` identifiers, function calls kept as written.

sqlglot would translate the functions it knows into one another. Here every call stays a plain call by the name its
user wrote (`exp.Anonymous`), so that one table of ours (`functions`) decides what a name means and nothing slips by it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.tokens import TokenType

# Calls whose arguments have a grammar of their own, so that a plain list of arguments would not read them.
_OWN_GRAMMAR = ("CAST", "TRY_CAST", "EXTRACT", "SUBSTRING", "TRIM", "POSITION", "OVERLAY", "STRING_AGG", "LISTAGG")


class PinotReader(DuckDB):
    """DuckDB's grammar, Pinot's identifiers."""

    class Tokenizer(DuckDB.Tokenizer):
        """`$` begins an identifier; `$$` quotes nothing."""

        HEREDOC_STRINGS: ClassVar[list[str | tuple[str, str]]] = []
        SINGLE_TOKENS: ClassVar[dict[str, TokenType]] = {
            sign: kind for sign, kind in DuckDB.Tokenizer.SINGLE_TOKENS.items() if sign not in {"$", "#"}
        }
        VAR_SINGLE_TOKENS: ClassVar[set[str]] = {"$"}

    class Parser(DuckDB.Parser):
        """Every function call stays as it was written."""

        FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
            name: parse for name, parse in DuckDB.Parser.FUNCTION_PARSERS.items() if name in _OWN_GRAMMAR
        }
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
            name: parse for name, parse in DuckDB.Parser.NO_PAREN_FUNCTION_PARSERS.items() if name in {"CASE", "ANY"}
        }
