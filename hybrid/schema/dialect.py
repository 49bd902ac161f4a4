"""The SQL dialect of statements: DuckDB's grammar, Pinot's `$segmentName` identifiers, function calls as written.

sqlglot would translate the functions it knows into one another. Here every call remains a plain call by the name that
its user wrote (`exp.Anonymous`), so that one allow-list decides what each name means:
`sql.functions` for statements, `expression.functions` for transforms and filters.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import TokenType

# sqlglot warns of clauses that it ignores; readers of the tree refuse the important ones by name.
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)

# Calls whose arguments have a grammar of their own, and are no plain list.
_OWN_GRAMMAR = ("CAST", "TRY_CAST", "EXTRACT", "SUBSTRING", "TRIM", "POSITION", "OVERLAY", "STRING_AGG", "LISTAGG")

# These keep their IGNORE NULLS only as typed calls.
_IGNORE_NULLS = ("LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE", "NTH_VALUE")

# The key in the meta of an ORDER BY item: whether its user wrote NULLS FIRST or NULLS LAST.
NULLS_WRITTEN = "nulls_written"


def canonical(name: str) -> str:
    """A function's name as Pinot compares names: in lower case, without underscores."""
    return name.replace("_", "").lower()


class PinotReader(DuckDB):
    """DuckDB's grammar with Pinot's identifiers."""

    class Tokenizer(DuckDB.Tokenizer):
        """`$` begins an identifier; `$$` quotes nothing; DIV is a name."""

        HEREDOC_STRINGS: ClassVar[list[str | tuple[str, str]]] = []
        SINGLE_TOKENS: ClassVar[dict[str, TokenType]] = {
            sign: kind for sign, kind in DuckDB.Tokenizer.SINGLE_TOKENS.items() if sign not in {"$", "#"}
        }
        # Pinot's DIV(a, b) is a function.
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            word: kind for word, kind in DuckDB.Tokenizer.KEYWORDS.items() if word != "DIV"
        }
        VAR_SINGLE_TOKENS: ClassVar[set[str]] = {"$"}
        # None of these is run. Without the list they are ordinary words, and errors can name their position.
        COMMANDS: ClassVar[set[TokenType]] = set()

    class Parser(DuckDBParser):
        """A parser that keeps every function call as it was written."""

        FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {
            name: build for name, build in DuckDBParser.FUNCTIONS.items() if name in _IGNORE_NULLS
        }
        FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
            name: parse for name, parse in DuckDBParser.FUNCTION_PARSERS.items() if name in _OWN_GRAMMAR
        }

        def _parse_types(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
            """A type, with the name that its user wrote: LONG and BIGINT are two names of one type."""
            written = self._curr.text if self._curr else ""
            parsed = super()._parse_types(*args, **kwargs)
            if isinstance(parsed, exp.DataType):
                parsed.meta["written"] = written
            return parsed

        def _parse_ordered(self, *args: Any, **kwargs: Any) -> exp.Ordered | None:
            """An ORDER BY item, and whether its user wrote the position of nulls."""
            parsed: exp.Ordered | None = super()._parse_ordered(*args, **kwargs)
            last = [token.text.upper() for token in self._tokens[max(0, self._index - 2) : self._index]]
            if parsed is not None:
                parsed.meta[NULLS_WRITTEN] = last in (["NULLS", "FIRST"], ["NULLS", "LAST"])
            return parsed

        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
            name: parse for name, parse in DuckDBParser.NO_PAREN_FUNCTION_PARSERS.items() if name in {"CASE", "ANY"}
        }
