"""Constant arguments: literals, and simple functions of literals, which are computed here."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from hybrid.schema import characters
from hybrid.schema.dialect import canonical
from hybrid.sql.calls import literal_number, literal_text, text
from hybrid.sql.nodes import nodes_of

_TEXT_CALLS: dict[str, Callable[..., str]] = {
    "lower": characters.lower,
    "lcase": characters.lower,
    "upper": characters.upper,
    "ucase": characters.upper,
    "trim": lambda value: value.strip(characters.TRIMMED),
    "ltrim": lambda value: value.lstrip(characters.SPACES),
    "rtrim": lambda value: value.rstrip(characters.SPACES),
    "reverse": lambda value: value[::-1],
    "replace": str.replace,
}
_COUNTS = {"replace": 3}


def fold_constants(tree: exp.Expr) -> None:
    """Replaces arguments that are computed from constants by their text: `DATETRUNC(LOWER('DAY'), ts)`."""
    for node in reversed(nodes_of(tree, exp.Anonymous, exp.DPipe, exp.Trim)):
        if isinstance(node.parent, exp.Anonymous):
            constant = constant_text(node)
            if constant is not None and constant.isascii():
                node.replace(text(constant))


def constant_text(node: exp.Expr) -> str | None:
    """The text value of a constant expression, or None."""
    node = node.unnest()
    written = literal_text(node)
    if written is not None:
        return written
    if isinstance(node, exp.DPipe):
        return _joined([node.this, node.expression])
    if isinstance(node, exp.Cast) and node.to.this in exp.DataType.TEXT_TYPES:
        return constant_text(node.this)
    if isinstance(node, exp.Trim) and not node.expression and not node.args.get("position"):
        inner = constant_text(node.this)
        return None if inner is None else inner.strip(characters.TRIMMED)
    return _called(node) if isinstance(node, exp.Anonymous) else None


def constant_number(node: exp.Expr) -> float | None:
    """The number value of a constant expression, or None."""
    node = node.unnest()
    number = literal_number(node)
    if number is not None:
        return number
    if isinstance(node, exp.Cast):
        return constant_number(node.this)
    if isinstance(node, exp.Add | exp.Sub | exp.Mul):
        left, right = constant_number(node.this), constant_number(node.expression)
        if left is None or right is None:
            return None
        if isinstance(node, exp.Mul):
            return left * right
        return left + right if isinstance(node, exp.Add) else left - right
    return None


def described(node: exp.Expr) -> str:
    """An argument as errors name it: a column or a constant as written, or a phrase for computed values."""
    inner = node.unnest()
    return f"'{inner.name}'" if isinstance(inner, exp.Column | exp.Literal) else "what is computed here"


def _called(node: exp.Anonymous) -> str | None:
    name, arguments = canonical(node.name), node.expressions
    if name == "concat" and len(arguments) != 3:
        return _joined(arguments)
    if name == "concat":
        left, right, between = arguments
        return _joined([left, between, right])
    texts = [constant_text(argument) for argument in arguments]
    if name not in _TEXT_CALLS or None in texts or len(texts) != _COUNTS.get(name, 1):
        return None
    return _TEXT_CALLS[name](*texts)


def _joined(parts: list[exp.Expr]) -> str | None:
    texts = [constant_text(part) for part in parts]
    return None if None in texts else "".join(text or "" for text in texts)
