"""Numbers in Spark SQL with DuckDB's results: NaN, infinities, signed zeros, decimals with all their digits.

Spark's own CEIL and FLOOR return BIGINT, its logarithms null, and its negation cuts a decimal to 34 digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from hybrid.errors import VALIDATION, QueryError
from hybrid.sql.calls import literal_number
from hybrid.sql.kinds import DECIMAL, DOUBLE, FLOAT
from hybrid.sql.numeric_types import DIGITS_MAX, NumericType
from hybrid.sql.spark_text import quoted

INFINITY, NAN = "CAST('Infinity' AS double)", "CAST('NaN' AS double)"
# Texts that Java 17 writes with a digit too many, and the shortest ones.
_LONG_TEXTS = (("4.9E-324", "5.0E-324"), ("1.4E-45", "1.0E-45"))
_POWER = "CAST(substring_index(t, 'E', -1) AS int)"
_TEXT_OF_DOUBLE = (
    "(CASE WHEN t IS NULL OR NOT contains(t, 'E') THEN t "
    f"WHEN {_POWER} BETWEEN -4 AND 15 "
    r"THEN regexp_replace(CAST(CAST(t AS decimal(38, 21)) AS string), '(\\.[0-9]+?)0+$', '$1') "
    r"ELSE concat(regexp_replace(substring_index(t, 'E', 1), '\\.0$', ''), 'e', "
    f"if({_POWER} < 0, '-', '+'), if(abs({_POWER}) < 10, '0', ''), abs({_POWER})) END)"
)
# Writes a node as Spark SQL. The rules below write an operand several times: each must give the same value.
Write = Callable[[exp.Expr], str]
TypeOf = Callable[[exp.Expr], NumericType | None]
NumberRule = Callable[[Sequence[exp.Expr], Write, TypeOf], str]


def write_quotient(node: exp.Div, write: Write) -> str:
    """A quotient in doubles; by zero it is an infinity with the sign of both operands, and 0 / 0 is NaN."""
    value, by = (f"CAST({write(side)} AS double)" for side in (node.this, node.expression))
    if literal_number(node.expression.unnest()):
        return f"({value} / {by})"
    zero = f"if(CAST({by} AS string) = '-0.0', -{INFINITY}, {INFINITY})"
    return f"(CASE WHEN {by} = 0 THEN {value} * {zero} ELSE {value} / {by} END)"


def write_remainder(left: exp.Expr, right: exp.Expr, write: Write, type_of: TypeOf) -> str:
    """A remainder; by zero it is NaN for doubles, and an error for whole numbers."""
    plain = f"({write(left)} % {write(right)})"
    if not any(_is_double(type_of(side)) for side in (left, right)):
        return plain
    return f"(CASE WHEN {write(right)} = 0 THEN {write(left)} * {NAN} ELSE {plain} END)"


def write_negation(node: exp.Expr, written: str, type_of: TypeOf) -> str:
    """The negation of a number; of a decimal by subtraction, which keeps all digits."""
    numeric = type_of(node)
    if numeric is not None and numeric.kind is DECIMAL and not isinstance(node.unnest(), exp.Literal):
        return f"(0 - {written})"
    return f"(- {written})"


def write_text(node: exp.Expr, write: Write, type_of: TypeOf) -> str:
    """A number as DuckDB's text. For doubles Java's `1.0E10` becomes `10000000000.0`, and `1.5E-7` `1.5e-07`."""
    written = f"CAST({write(node)} AS string)"
    numeric = type_of(node)
    if numeric is None or numeric.kind not in {FLOAT, DOUBLE}:
        return written
    for java, shortest in _LONG_TEXTS:
        written = f"replace({written}, {quoted(java)}, {quoted(shortest)})"
    return f"element_at(transform(array({written}), t -> {_TEXT_OF_DOUBLE}), 1)"


def needs_difference(left: NumericType | None, right: NumericType | None) -> bool:
    """Whether two decimals together have too many digits for a decimal: Spark would round one to compare them."""
    if left is None or right is None or DECIMAL not in {left.kind, right.kind}:
        return False
    if _is_double(left) or _is_double(right):
        return False
    digits = max(min(side.digits, 20) if side.is_whole else side.digits for side in (left, right))
    return left.scale != right.scale and digits + max(left.scale, right.scale) > DIGITS_MAX


def _is_double(found: NumericType | None) -> bool:
    return found is not None and not found.is_whole and found.kind is not DECIMAL


def _is_decimal(found: NumericType | None) -> bool:
    return found is not None and found.kind is DECIMAL


def _double(written: str) -> str:
    return f"CAST({written} AS double)"


def _rounding(name: str) -> NumberRule:
    """CEIL and FLOOR: exact for decimals, in doubles for all others."""

    def rule(arguments: Sequence[exp.Expr], write: Write, type_of: TypeOf) -> str:
        value, numeric = write(arguments[0]), type_of(arguments[0])
        if _is_decimal(numeric):
            return f"{name}({value})"
        if numeric is not None and numeric.is_whole:
            return _double(value)
        return _typed(numeric, _WHOLE[name](_double(value)))

    return rule


def _up(value: str) -> str:
    return f"(CASE WHEN rint({value}) < {value} THEN rint({value}) + 1 ELSE rint({value}) END)"


def _down(value: str) -> str:
    return f"(CASE WHEN rint({value}) > {value} THEN rint({value}) - 1 ELSE rint({value}) END)"


def _towards_zero(value: str) -> str:
    return f"(CASE WHEN {value} < 0 THEN {_up(value)} ELSE {_down(value)} END)"


_WHOLE: dict[str, Callable[[str], str]] = {"ceil": _up, "floor": _down}


def _truncated(arguments: Sequence[exp.Expr], write: Write, type_of: TypeOf) -> str:
    value, numeric = write(arguments[0]), type_of(arguments[0])
    if len(arguments) > 1:
        return _cut(value, _places("TRUNCATE", arguments[1]), numeric)
    if numeric is not None and numeric.is_whole:
        return value
    if _is_decimal(numeric):
        return f"(CASE WHEN {value} < 0 THEN ceil({value}) ELSE floor({value}) END)"
    return _typed(numeric, _towards_zero(_double(value)))


def _cut(value: str, places: int, found: NumericType | None) -> str:
    """A decimal cut after `places` decimal places."""
    if not _is_decimal(found):
        raise QueryError("TRUNC with places takes a decimal in a row expression: use TRUNCATE.", pinot_code=VALIDATION)
    return f"(CASE WHEN {value} < 0 THEN ceil({value}, {places}) ELSE floor({value}, {places}) END)"


def _rounded(arguments: Sequence[exp.Expr], write: Write, type_of: TypeOf) -> str:
    """ROUND: halves are rounded away from zero."""
    value, numeric = write(arguments[0]), type_of(arguments[0])
    if _is_decimal(numeric) or (numeric is not None and numeric.is_whole):
        places = f", {_places('ROUND', arguments[1])}" if len(arguments) > 1 else ""
        return f"round({value}{places})"
    if len(arguments) > 1:
        raise QueryError(
            "ROUND with places takes a decimal in a row expression: use ROUNDDECIMAL.", pinot_code=VALIDATION
        )
    exact = _double(value)
    down = _towards_zero(exact)
    return _typed(numeric, f"(CASE WHEN abs({exact} - {down}) >= 0.5D THEN {down} + sign({exact}) ELSE {down} END)")


def _places(name: str, node: exp.Expr) -> int:
    places = literal_number(node.unnest())
    if places is None or places != int(places) or not -DIGITS_MAX <= places <= DIGITS_MAX:
        raise QueryError(f"{name}: the number of places must be a constant in a row expression.", pinot_code=VALIDATION)
    return int(places)


def _typed(found: NumericType | None, written: str) -> str:
    return f"CAST({written} AS float)" if found is not None and found.kind is FLOAT else written


def _absolute(arguments: Sequence[exp.Expr], write: Write, type_of: TypeOf) -> str:
    value = write(arguments[0])
    return f"if({value} < 0, 0 - {value}, {value})" if _is_decimal(type_of(arguments[0])) else f"abs({value})"


def _logarithm(name: str) -> NumberRule:
    """A logarithm: -Infinity for 0, NaN for negative numbers."""

    def rule(arguments: Sequence[exp.Expr], write: Write, type_of: TypeOf) -> str:
        if len(arguments) != 1:
            raise QueryError(f"{name.upper()} takes 1 argument in a row expression.", pinot_code=VALIDATION)
        value = _double(write(arguments[0]))
        return f"(CASE WHEN {value} < 0 THEN {NAN} WHEN {value} = 0 THEN -{INFINITY} ELSE {name}({value}) END)"

    return rule


def _power(arguments: Sequence[exp.Expr], write: Write, type_of: TypeOf) -> str:
    """POWER as in C and SQL: 1 to any power is 1, and so is -1 to an infinite power; Java returns NaN."""
    base, power = (_double(write(argument)) for argument in arguments)
    is_one = f"{base} = 1 OR ({base} = -1 AND abs({power}) = {INFINITY})"
    return f"(CASE WHEN {power} IS NULL THEN NULL WHEN {is_one} THEN 1D ELSE pow({base}, {power}) END)"


def _sign(arguments: Sequence[exp.Expr], write: Write, type_of: TypeOf) -> str:
    value = write(arguments[0])
    return f"if({value} = 0, 0D, sign({value}))"


# By DuckDB's name.
NUMBER_RULES: dict[str, NumberRule] = {
    "ceil": _rounding("ceil"),
    "ceiling": _rounding("ceil"),
    "floor": _rounding("floor"),
    "trunc": _truncated,
    "round": _rounded,
    "abs": _absolute,
    "sign": _sign,
    "ln": _logarithm("ln"),
    "log2": _logarithm("log2"),
    "log10": _logarithm("log10"),
    "pow": _power,
    "power": _power,
}
