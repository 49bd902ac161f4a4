"""Functions over windows in Spark SQL: the function, its partitions, order and frame."""

from __future__ import annotations

from typing import Protocol

from sqlglot import exp

from hybrid.sql.spark_aggregates import Call, Operands, write_aggregate

_VALUE_WINDOWS: dict[type[exp.Expr], str] = {
    exp.Lag: "lag",
    exp.Lead: "lead",
    exp.FirstValue: "first_value",
    exp.LastValue: "last_value",
    exp.NthValue: "nth_value",
}


class WindowOperands(Operands, Protocol):
    """Writes the parts of a window, and knows their types."""

    def ordered(self, item: exp.Expr) -> str:
        """An item of ORDER BY."""

    def as_type(self, node: exp.Expr, kind: str | None) -> str:
        """A value that DuckDB converts to `kind` where it stands."""


def write_window(operands: WindowOperands, node: exp.Expr) -> str:
    """A function over a window."""
    inner, condition, nulls = node.this, "", ""
    if isinstance(inner, exp.IgnoreNulls):
        inner, nulls = inner.this, " IGNORE NULLS"
    if isinstance(inner, exp.Filter):
        inner, condition = inner.this, operands.write(inner.expression.this)
    over = _over(operands, node)
    if type(inner) in _VALUE_WINDOWS and not condition:
        return f"{_of_value(operands, inner, over)}{nulls}{over}"
    written = None
    if isinstance(inner, exp.Anonymous) and not nulls:
        written = write_aggregate(Call(inner, operands, condition, over))
    if written is None:
        raise operands.refusal(node)
    return written


def _of_value(operands: WindowOperands, node: exp.Expr, over: str) -> str:
    """LAG and its kind."""
    if "ORDER BY" not in over:
        raise operands.refusal(node, "needs an ORDER BY in its window: Spark keeps no order of rows")
    arguments = [operands.write(node.this)]
    for name in ("offset", "default"):
        value = node.args.get(name)
        if value is not None:
            arguments.append(
                operands.write(value) if name == "offset" else operands.as_type(value, operands.duckdb_type(node.this))
            )
    return f"{_VALUE_WINDOWS[type(node)]}({', '.join(arguments)})"


def _over(operands: WindowOperands, node: exp.Expr) -> str:
    if node.args.get("alias") or node.args.get("first") or (node.args.get("over") or "OVER").upper() != "OVER":
        raise operands.refusal(node, "names a window")
    parts = []
    if node.args.get("partition_by"):
        parts.append(f"PARTITION BY {', '.join(operands.write(key) for key in node.args['partition_by'])}")
    if node.args.get("order") is not None:
        parts.append(f"ORDER BY {', '.join(operands.ordered(item) for item in node.args['order'].expressions)}")
    spec = node.args.get("spec")
    if spec is not None:
        parts.append(_frame(operands, spec))
    return f" OVER ({' '.join(parts)})"


def _frame(operands: WindowOperands, spec: exp.Expr) -> str:
    kind = str(spec.args.get("kind") or "").upper()
    if kind not in {"ROWS", "RANGE"} or spec.args.get("exclude"):
        raise operands.refusal(spec, "is a frame without a form in Spark")
    start, end = (_bound(operands, spec, name) for name in ("start", "end"))
    return f"{kind} BETWEEN {start} AND {end or 'CURRENT ROW'}"


def _bound(operands: WindowOperands, spec: exp.Expr, name: str) -> str:
    value = spec.args.get(name)
    if value is None:
        return ""
    side = str(spec.args.get(f"{name}_side") or "").upper()
    word = value.upper() if isinstance(value, str) else operands.write(value)
    if isinstance(value, exp.Expr) and not isinstance(value.unnest(), exp.Literal):
        raise operands.refusal(spec, "is a frame without a form in Spark")
    return f"{word} {side}".strip()
