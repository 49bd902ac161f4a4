"""Arithmetic of expressions: on whole numbers exactly, on all others as Java computes with doubles.

After Pinot's ArithmeticFunctions and its arithmetic package; Pinot computes with doubles throughout.
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
    """The quotient `a / b`, always a double; by zero it is `instead`, else an infinity or NaN."""
    first, second = float(number(one)), float(number(other))
    if second:
        return first / second
    if instead is not None:
        return float(number(instead))
    return math.nan if first == 0 or math.isnan(first) else math.copysign(math.inf, first) * math.copysign(1, second)


def modulo(one: object, other: object) -> Number:
    """The remainder, with the sign of the first, as in Java; of decimals exactly; by zero it is NaN."""
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
    """The opposite `-a`."""
    found = exact(value)
    return found.copy_negate() if isinstance(found, Decimal) else _in_long(-found)


def _decimal(found: Decimal) -> Decimal:
    """A decimal as queries hold it, of at most 38 digits."""
    if len(found.as_tuple().digits) > _DIGITS_MAX or found.adjusted() >= _DIGITS_MAX:
        raise ValueError(f"a decimal has more than {_DIGITS_MAX} digits")
    return found


def _absolute(value: object) -> Number:
    found = exact(value)
    return found.copy_abs() if isinstance(found, Decimal) else _in_long(abs(found))


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
    """Pinot's round(time, step): a whole number cut towards zero to a multiple."""
    found = whole(value)
    return found - int(math.copysign(1, found)) * (abs(found) % to)


def _round_decimal(value: object, scale: object = None) -> float:
    """Without places as Java's Math.round, halves up; with places halves go away from zero."""
    if scale is not None:
        return _rescaled(value, scale, ROUND_HALF_UP)
    found = float(number(value)) + 0.5
    return float(math.floor(found)) if math.isfinite(found) else found


def _truncate(value: object, scale: object = None) -> Number:
    """Without places the kind of the number stays; with places it is a double."""
    if scale is not None:
        return _rescaled(value, scale, ROUND_DOWN)
    found = exact(value)
    if isinstance(found, Decimal):
        return Decimal(int(found))
    return found if isinstance(found, int) else _rescaled(found, 0, ROUND_DOWN)


def _rescaled(value: object, scale: object, rounding: str) -> float:
    found, places = float(number(value)), whole(scale)
    if not math.isfinite(found):
        return found
    if abs(places) > _SCALE_MAX:
        raise ValueError(f"{places} is no number of decimal places")
    return float(Decimal(repr(found)).quantize(Decimal(1).scaleb(-places), rounding=rounding, context=_WIDE))


def _least(*values: object) -> Number | None:
    """The least of the values that are no nulls; NaN is the greatest number."""
    return _best(values, less)


def _greatest(*values: object) -> Number | None:
    return _best(values, lambda one, other: less(other, one))


def _best(values: Sequence[object], is_better: Callable[[object, object], bool]) -> Number | None:
    found: Number | None = None
    for value in values:
        if value is not None and (found is None or is_better(value, found)):
            found = exact(value)
    if isinstance(found, Decimal) and any(isinstance(value, float | JsonFloat) for value in values):
        return float(found)  # decimals and doubles together are doubles
    return found


def _sign(value: object) -> float:
    found = number(value)
    return math.nan if math.isnan(found) else float((found > 0) - (found < 0))


def _log(value: object, log: Callable[[float], float]) -> float:
    found = float(number(value))
    return -math.inf if found == 0 else _double(log, found)


def _whole_or_double(value: object, cut: Callable[[Any], int]) -> Number:
    """CEIL and FLOOR: what is whole stays as it is, a double stays a double."""
    found = exact(value)
    if isinstance(found, int) or not math.isfinite(found):
        return found
    if isinstance(found, Decimal):
        return Decimal(cut(found))
    return math.copysign(float(cut(found)), found) if abs(found) < 1 and not cut(found) else float(cut(found))


def _double(function: Callable[..., float], *values: float) -> float:
    """What Java gives where Python raises: NaN outside of the domain, an infinity beyond the largest double."""
    try:
        return function(*values)
    except ValueError:
        return math.nan
    except OverflowError:
        return math.inf


def _safe(compute: Callable[[Any, Any], Any], one: object, other: object) -> Number:
    """A sum, a difference or a product: of whole numbers a LONG, of decimals with all digits, else a double."""
    first: Any = one
    second: Any = other
    if type(one) not in PLAIN or type(other) not in PLAIN:
        first, second = together(exact(one), exact(other))
        if isinstance(first, Decimal) or isinstance(second, Decimal):
            return _decimal(_EXACT[compute](Decimal(first), Decimal(second)))
    try:
        found: Number = compute(first, second)
    except OverflowError as error:  # a whole number that no double can hold meets a double
        raise ValueError("a number is too large to compute with") from error
    if isinstance(found, int) and not LONG_MIN <= found <= LONG_MAX:
        raise ValueError("a whole number is too large: at most 64 bits")
    return found


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
