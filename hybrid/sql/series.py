"""Series of whole numbers in FROM: `generate_series(start, stop, step)`, and `range`, which leaves out the stop.

They are the only table functions. Their arguments are constants, so that their length is known and bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from typing import Any

from sqlglot import exp

from hybrid.errors import VALIDATION, QueryError
from hybrid.schema.moment import parse_instant
from hybrid.sql.calls import call, literal_text, number

SERIES = frozenset({"generate_series", "range"})
SERIES_MAX = 100_000
_WHOLE_MAX = 2**63
_OPERATIONS: dict[type[exp.Expr], Callable[[int, int], int]] = {
    exp.Add: lambda one, other: one + other,
    exp.Sub: lambda one, other: one - other,
    exp.Mul: lambda one, other: one * other,
}


def is_series(node: exp.Table) -> bool:
    """Whether a source in FROM is a series."""
    return isinstance(node.this, exp.Anonymous) and node.this.name.lower() in SERIES


def settle_series(node: exp.Table) -> None:
    """Writes the constants of a series as numbers. QueryError (700) for anything else, and for too many numbers."""
    function = node.this
    name = function.name.lower()
    values = [_constant(argument) for argument in function.expressions]
    numbers = [value for value in values if value is not None and abs(value) < _WHOLE_MAX]
    if not 1 <= len(values) <= 3 or len(numbers) < len(values):
        message = f"{name} in FROM takes a start, a stop and a step, which are whole numbers and no columns"
        raise QueryError(f"{message}: '{function.sql('duckdb')[:60]}'.", pinot_code=VALIDATION)
    start, stop, step = [0, numbers[0], 1] if len(numbers) == 1 else [*numbers, 1][:3]
    refuse_long(name, start, stop, step)
    node.set("this", call(name, *map(number, (start, stop, step))))


def refuse_long(name: str, start: int, stop: int, step: int) -> None:
    """QueryError (700) for a series without a step, and for one of too many numbers."""
    if step == 0:
        raise QueryError(f"{name}: the step is 0.", pinot_code=VALIDATION)
    count = (stop - start) // step + 1
    if count > SERIES_MAX:
        message = f"{name}: these are {count} numbers, more than {SERIES_MAX}."
        raise QueryError(message, pinot_code=VALIDATION, hint="Take a larger step, or a shorter range.")


def is_bounded_series(function: dict[str, Any]) -> bool:
    """Whether a table function in DuckDB's own tree is a series of a start, a stop and a step that are constants."""
    if function.get("function_name") not in SERIES or function.get("schema") or function.get("catalog"):
        return False
    values = [_constant_in(argument) for argument in function.get("arguments") or ()]
    if len(values) != 3:
        return False
    start, stop, step = values
    if start is None or stop is None or step is None:
        return False
    return step != 0 and (stop - start) // step + 1 <= SERIES_MAX


def _constant_in(argument: dict[str, Any]) -> int | None:
    """The whole number of an argument in DuckDB's tree; None for anything else."""
    expression = argument.get("expression") or {}
    literal = expression.get("literal") or {}
    is_whole = not argument.get("name") and expression.get("class") == "CONSTANT" and literal.get("kind") == "INTEGER"
    return int(literal["text"]) if is_whole else None


def _constant(node: exp.Expr) -> int | None:
    """The value of an expression of whole numbers and timestamps (epoch milliseconds); None for any other."""
    node = node.unnest()
    if isinstance(node, exp.Neg):
        value = _constant(node.this)
        return None if value is None else -value
    if type(node) in _OPERATIONS:
        one, other = _constant(node.this), _constant(node.expression)
        return None if one is None or other is None else _OPERATIONS[type(node)](one, other)
    if isinstance(node, exp.Cast):
        return _instant(node)
    is_whole = isinstance(node, exp.Literal) and not node.is_string and len(node.name) < 20 and node.name.isdigit()
    return int(node.name) if is_whole else None


def _instant(node: exp.Cast) -> int | None:
    text = literal_text(node.this)
    instant = None if text is None or "TIMESTAMP" not in node.to.sql("duckdb") else parse_instant(text, UTC)
    return instant if isinstance(instant, int) else None
