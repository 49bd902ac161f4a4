"""The dialect that is read: DuckDB's grammar with Pinot's `$segmentName` identifiers, function calls kept as written.

sqlglot would translate the functions it knows into one another. Here every call stays a plain call by the name its
user wrote (`exp.Anonymous`), so that one table of ours decides what a name means and nothing slips by it:
`sql.functions` for statements, `spec.expression.functions` for transforms and filters.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import TokenType

# sqlglot warns of what it leaves out; what matters of it is refused by name by whoever reads the tree.
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)

# Calls whose arguments have a grammar of their own, so that a plain list of arguments would not read them.
_OWN_GRAMMAR = ("CAST", "TRY_CAST", "EXTRACT", "SUBSTRING", "TRIM", "POSITION", "OVERLAY", "STRING_AGG", "LISTAGG")

# Only as typed calls do these keep their IGNORE NULLS.
_IGNORE_NULLS = ("LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE", "NTH_VALUE")

# In the meta of an ORDER BY's part where its user wrote NULLS FIRST or NULLS LAST.
NULLS_WRITTEN = "nulls_written"


def canonical(name: str) -> str:
    """A function's name as Pinot tells names apart."""
    return name.replace("_", "").lower()


class PinotReader(DuckDB):
    """DuckDB's grammar, Pinot's identifiers."""

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
        # None of these is run; without the list they are words like others, and the error can say where they stand.
        COMMANDS: ClassVar[set[TokenType]] = set()

    class Parser(DuckDBParser):
        """Every function call stays as it was written."""

        FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {
            name: build for name, build in DuckDBParser.FUNCTIONS.items() if name in _IGNORE_NULLS
        }
        FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
            name: parse for name, parse in DuckDBParser.FUNCTION_PARSERS.items() if name in _OWN_GRAMMAR
        }

        def _parse_types(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
            """A type, with the name by which its user called it: LONG and BIGINT are one type with two names."""
            written = self._curr.text if self._curr else ""
            found = super()._parse_types(*args, **kwargs)
            if isinstance(found, exp.DataType):
                found.meta["written"] = written
            return found

        def _parse_ordered(self, *args: Any, **kwargs: Any) -> exp.Ordered | None:
            """A part of ORDER BY, and whether its user wrote where nulls stand."""
            found: exp.Ordered | None = super()._parse_ordered(*args, **kwargs)
            last = [token.text.upper() for token in self._tokens[max(0, self._index - 2) : self._index]]
            if found is not None:
                found.meta[NULLS_WRITTEN] = last in (["NULLS", "FIRST"], ["NULLS", "LAST"])
            return found

        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
            name: parse for name, parse in DuckDBParser.NO_PAREN_FUNCTION_PARSERS.items() if name in {"CASE", "ANY"}
        }
