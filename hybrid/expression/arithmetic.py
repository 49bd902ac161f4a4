"""Arithmetic of expressions: exact on whole numbers, and like Java's doubles on other numbers.

After Pinot's ArithmeticFunctions and its arithmetic package. Pinot computes with doubles only.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal
from typing import Any

from hybrid.expression.arguments import PLAIN, Number, exact, less, number, together, whole
from hybrid.expression.constants import step
from hybrid.expression.rules import Rule
from hybrid.schema.jsontext import JsonFloat
from hybrid.schema.values import LONG_MAX, LONG_MIN

_WIDE = Context(prec=400)
_SCALE_MAX = 300
_DIGITS_MAX = 38
_EXACT: dict[Callable[[Any, Any], Any], Callable[[Decimal, Decimal], Decimal]] = {
    operator.add: _WIDE.add,
    operator.sub: _WIDE.subtract,
    operator.mul: _WIDE.multiply,
}


def plus(one: object, other: object) -> Number:
    """The sum `a + b`."""
    return _safe(operator.add, one, other)


def minus(one: object, other: object) -> Number:
    """The difference `a - b`."""
    return _safe(operator.sub, one, other)


def times(one: object, other: object) -> Number:
    """The product `a * b`."""
    return _safe(operator.mul, one, other)


def divide(one: object, other: object, instead: object = None) -> float:
    """The quotient `a / b`, always a double. Division by zero gives `instead`, else an infinity or NaN."""
    first, second = float(number(one)), float(number(other))
    if second:
        return first / second
    if instead is not None:
        return float(number(instead))
    return math.nan if first == 0 or math.isnan(first) else math.copysign(math.inf, first) * math.copysign(1, second)


def modulo(one: object, other: object) -> Number:
    """The remainder, with the sign of the first, as in Java; exact for decimals.

    Division by zero is NaN for doubles, else a ValueError.
    """
    first, second = together(exact(one), exact(other))
    if isinstance(first, Decimal) or isinstance(second, Decimal):
        if not second:
            raise ValueError("it divides by zero")
        return _WIDE.remainder(Decimal(first), Decimal(second))
    if not second and isinstance(first, int) and isinstance(second, int):
        raise ValueError("it divides by zero")
    if not second or (isinstance(first, float) and not math.isfinite(first)):
        return math.nan
    if isinstance(first, int) and isinstance(second, int):
        return int(math.copysign(1, first)) * (abs(first) % abs(second))
    return math.fmod(first, second)


def negate(value: object) -> Number:
    """The negation `-a`."""
    operand = exact(value)
    return operand.copy_negate() if isinstance(operand, Decimal) else _in_long(-operand)


def _decimal(found: Decimal) -> Decimal:
    """`found`, which must have at most 38 digits, as decimals in queries."""
    if len(found.as_tuple().digits) > _DIGITS_MAX or found.adjusted() >= _DIGITS_MAX:
        raise ValueError(f"a decimal has more than {_DIGITS_MAX} digits")
    return found


def _absolute(value: object) -> Number:
    operand = exact(value)
    return operand.copy_abs() if isinstance(operand, Decimal) else _in_long(abs(operand))


def _in_long(found: Number) -> Number:
    if isinstance(found, int) and found > LONG_MAX:
        raise ValueError("a whole number is too large: at most 64 bits")
    return found


def _int_div(one: object, other: object) -> int:
    first, second = number(one), number(other)
    if not second:
        raise ValueError("it divides by zero")
    return math.floor(first / second) if isinstance(first, float) or isinstance(second, float) else first // second


def _power(base: object, exponent: object) -> float:
    first, second = float(number(base)), float(number(exponent))
    if first == 0 and second < 0:
        return math.copysign(math.inf, first) if second % 2 == 1 else math.inf
    if abs(first) > 1 and first < 0 and second % 2 == 1:
        return -_double(math.pow, -first, second)
    return _double(math.pow, first, second)


def _round_to(value: object, to: int) -> int:
    """Pinot's round(time, step): a whole number, truncated towards zero to a multiple."""
    operand = whole(value)
    return operand - int(math.copysign(1, operand)) * (abs(operand) % to)


def _round_decimal(value: object, scale: object = None) -> float:
    """Rounding. Without places halves go up, as in Java's Math.round; with places they go away from zero."""
    if scale is not None:
        return _rescaled(value, scale, ROUND_HALF_UP)
    operand = float(number(value)) + 0.5
    return float(math.floor(operand)) if math.isfinite(operand) else operand


def _truncate(value: object, scale: object = None) -> Number:
    """Truncation. Without places the result has the type of the number; with places it is a double."""
    if scale is not None:
        return _rescaled(value, scale, ROUND_DOWN)
    operand = exact(value)
    if isinstance(operand, Decimal):
        return Decimal(int(operand))
    return operand if isinstance(operand, int) else _rescaled(operand, 0, ROUND_DOWN)


def _rescaled(value: object, scale: object, rounding: str) -> float:
    operand, places = float(number(value)), whole(scale)
    if not math.isfinite(operand):
        return operand
    if abs(places) > _SCALE_MAX:
        raise ValueError(f"{places} is no number of decimal places")
    return float(Decimal(repr(operand)).quantize(Decimal(1).scaleb(-places), rounding=rounding, context=_WIDE))


def _least(*values: object) -> Number | None:
    """The least value that is not null; NaN is the greatest number."""
    return _best(values, less)


def _greatest(*values: object) -> Number | None:
    return _best(values, lambda value, other: less(other, value))


def _best(values: Sequence[object], is_better: Callable[[object, object], bool]) -> Number | None:
    best: Number | None = None
    for value in values:
        if value is not None and (best is None or is_better(value, best)):
            best = exact(value)
    if isinstance(best, Decimal) and any(isinstance(value, float | JsonFloat) for value in values):
        return float(best)  # decimals and doubles together are doubles
    return best


def _sign(value: object) -> float:
    operand = number(value)
    return math.nan if math.isnan(operand) else float((operand > 0) - (operand < 0))


def _log(value: object, log: Callable[[float], float]) -> float:
    operand = float(number(value))
    return -math.inf if operand == 0 else _double(log, operand)


def _whole_or_double(value: object, cut: Callable[[Any], int]) -> Number:
    """CEIL and FLOOR: a whole number is unchanged, and the result of a double is a double."""
    operand = exact(value)
    if isinstance(operand, int) or not math.isfinite(operand):
        return operand
    if isinstance(operand, Decimal):
        return Decimal(cut(operand))
    return math.copysign(float(cut(operand)), operand) if abs(operand) < 1 and not cut(operand) else float(cut(operand))


def _double(function: Callable[..., float], *values: float) -> float:
    """The result as in Java where Python raises: NaN outside of the domain, an infinity beyond the largest double."""
    try:
        return function(*values)
    except ValueError:
        return math.nan
    except OverflowError:
        return math.inf


def _safe(compute: Callable[[Any, Any], Any], one: object, other: object) -> Number:
    """A sum, difference or product: a LONG of whole numbers, an exact decimal of decimals, else a double."""
    first: Any = one
    second: Any = other
    if type(one) not in PLAIN or type(other) not in PLAIN:
        first, second = together(exact(one), exact(other))
        if isinstance(first, Decimal) or isinstance(second, Decimal):
            return _decimal(_EXACT[compute](Decimal(first), Decimal(second)))
    try:
        result: Number = compute(first, second)
    except OverflowError as error:  # a double and a whole number beyond the largest double
        raise ValueError("a number is too large to compute with") from error
    if isinstance(result, int) and not LONG_MIN <= result <= LONG_MAX:
        raise ValueError("a whole number is too large: at most 64 bits")
    return result


RULES: dict[str, Rule] = {
    "plus": Rule(2, 2, plus),
    "add": Rule(2, 2, plus),
    "minus": Rule(2, 2, minus),
    "sub": Rule(2, 2, minus),
    "times": Rule(2, 2, times),
    "mult": Rule(2, 2, times),
    "divide": Rule(2, 3, divide),
    "div": Rule(2, 3, divide),
    "intDiv": Rule(2, 2, _int_div),
    "mod": Rule(2, 2, modulo),
    "abs": Rule(1, 1, _absolute),
    "negate": Rule(1, 1, negate),
    "sign": Rule(1, 1, _sign),
    "ceil": Rule(1, 1, lambda value: _whole_or_double(value, math.ceil)),
    "ceiling": Rule(1, 1, lambda value: _whole_or_double(value, math.ceil)),
    "floor": Rule(1, 1, lambda value: _whole_or_double(value, math.floor)),
    "round": Rule(2, 2, _round_to, {1: step}),
    "roundDecimal": Rule(1, 2, _round_decimal),
    "truncate": Rule(1, 2, _truncate),
    "power": Rule(2, 2, _power),
    "pow": Rule(2, 2, _power),
    "sqrt": Rule(1, 1, lambda value: _double(math.sqrt, float(number(value)))),
    "exp": Rule(1, 1, lambda value: _double(math.exp, float(number(value)))),
    "ln": Rule(1, 1, lambda value: _log(value, math.log)),
    "log": Rule(1, 1, lambda value: _log(value, math.log)),
    "log2": Rule(1, 1, lambda value: _log(value, math.log2)),
    "log10": Rule(1, 1, lambda value: _log(value, math.log10)),
    "least": Rule(2, None, _least, nulls=True),
    "greatest": Rule(2, None, _greatest, nulls=True),
}
