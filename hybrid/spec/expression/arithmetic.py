"""Arithmetic of expressions: on whole numbers exactly, on all others as Java computes with doubles.

After Pinot's ArithmeticFunctions and its arithmetic package; Pinot computes with doubles throughout.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal

from hybrid.spec.expression.arguments import number, whole
from hybrid.spec.expression.constants import step
from hybrid.spec.expression.rules import Rule

Number = int | float

_WIDE = Context(prec=400)
_SCALE_MAX = 300


def plus(one: object, other: object) -> Number:
    """The sum `a + b`."""
    return _safe(lambda: number(one) + number(other))


def minus(one: object, other: object) -> Number:
    """The difference `a - b`."""
    return _safe(lambda: number(one) - number(other))


def times(one: object, other: object) -> Number:
    """The product `a * b`."""
    return _safe(lambda: number(one) * number(other))


def divide(one: object, other: object, instead: object = None) -> float:
    """The quotient `a / b`, always a double; by zero it is `instead`, else an infinity or NaN."""
    first, second = float(number(one)), float(number(other))
    if second:
        return first / second
    if instead is not None:
        return float(number(instead))
    return math.nan if first == 0 or math.isnan(first) else math.copysign(math.inf, first) * math.copysign(1, second)


def modulo(one: object, other: object) -> Number:
    """The remainder, with the sign of the first, as in Java; by zero it is NaN."""
    first, second = number(one), number(other)
    if not second or (isinstance(first, float) and not math.isfinite(first)):
        return math.nan
    if isinstance(first, int) and isinstance(second, int):
        return int(math.copysign(1, first)) * (abs(first) % abs(second))
    return math.fmod(first, second)


def negate(value: object) -> Number:
    """The opposite `-a`."""
    return -number(value)


def _int_div(one: object, other: object) -> int:
    first, second = number(one), number(other)
    if not second:
        raise ValueError("it divides by zero")
    return math.floor(first / second) if isinstance(first, float) or isinstance(second, float) else first // second


def _power(base: object, exponent: object) -> float:
    return _double(math.pow, float(number(base)), float(number(exponent)))


def _round_to(value: object, to: int) -> int:
    """Pinot's round(time, step): a whole number cut to a multiple."""
    return whole(value) // to * to


def _round_decimal(value: object, scale: object = 0) -> float:
    return _rescaled(value, scale, ROUND_HALF_UP)


def _truncate(value: object, scale: object = 0) -> float:
    return _rescaled(value, scale, ROUND_DOWN)


def _rescaled(value: object, scale: object, rounding: str) -> float:
    found, places = float(number(value)), whole(scale)
    if not math.isfinite(found):
        return found
    if abs(places) > _SCALE_MAX:
        raise ValueError(f"{places} is no number of decimal places")
    return float(Decimal(repr(found)).quantize(Decimal(1).scaleb(-places), rounding=rounding, context=_WIDE))


def _least(*values: object) -> Number:
    return min(map(number, values))


def _greatest(*values: object) -> Number:
    return max(map(number, values))


def _sign(value: object) -> float:
    found = number(value)
    return math.nan if math.isnan(found) else float((found > 0) - (found < 0))


def _log(value: object, log: Callable[[float], float]) -> float:
    found = float(number(value))
    return -math.inf if found == 0 else _double(log, found)


def _whole_or_double(value: object, cut: Callable[[float], int]) -> Number:
    """CEIL and FLOOR: what is whole stays as it is, a double stays a double."""
    found = number(value)
    return found if isinstance(found, int) or not math.isfinite(found) else float(cut(found))


def _double(function: Callable[..., float], *values: float) -> float:
    """What Java gives where Python raises: NaN outside of the domain, an infinity beyond the largest double."""
    try:
        return function(*values)
    except ValueError:
        return math.nan
    except OverflowError:
        return math.inf


def _safe(compute: Callable[[], Number]) -> Number:
    try:
        return compute()
    except OverflowError as error:  # a whole number that no double can hold meets a double
        raise ValueError("a number is too large to compute with") from error


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
    "abs": Rule(1, 1, lambda value: abs(number(value))),
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
    "least": Rule(2, None, _least),
    "greatest": Rule(2, None, _greatest),
}
