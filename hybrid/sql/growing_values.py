"""Limits on values that grow with the rows: texts collected over windows, and concatenated columns.

DuckDB neither interrupts the making of one value nor counts it as memory. A window that is open on one side collects
each row's text again for every later row, which is quadratic in the table. Lengths of columns are known only at run
time.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from hybrid.errors import VALIDATION, QueryError
from hybrid.schema.dialect import canonical
from hybrid.sql.allowed import word_set
from hybrid.sql.calls import call, cast, literal_number, number, text
from hybrid.sql.nodes import nodes_of

WINDOW_ROWS_MAX = 1_000
_COLLECTING = word_set("stringagg listagg groupconcat list arrayagg jsongrouparray jsongroupobject histogram")
_JOINING = frozenset({"concat", "concat_ws"})


def check_windows(tree: exp.Query) -> None:
    """QueryError 700 for a statement that collects texts or lists over unbounded windows."""
    for window in nodes_of(tree, exp.Window):
        collected = window.this.this if isinstance(window.this, exp.Filter) else window.this
        if window.arg_key != "windows" and _is_collecting(collected) and not _is_bounded(window):
            name = collected.name.upper() if isinstance(collected, exp.Anonymous) else "STRING_AGG"
            raise QueryError(
                f"{name} OVER a window that may hold all rows makes each row's value of all of them.",
                pinot_code=VALIDATION,
                hint=f"Bound it: ROWS BETWEEN n PRECEDING AND CURRENT ROW, at most {WINDOW_ROWS_MAX}; or GROUP BY.",
            )


def guard_joined(tree: exp.Query, bytes_max: int, error_words: str) -> None:
    """Adds run-time checks of the columns' lengths to concatenations by `||` or CONCAT."""
    reason = f"{error_words}columns are put together to at most {bytes_max:,} bytes."
    for node in reversed(nodes_of(tree, exp.DPipe, exp.Anonymous)):  # inner ones first: outer ones are copied
        if isinstance(node, exp.Anonymous) and node.name.lower() not in _JOINING:
            continue
        if is_joining(node.parent):
            continue  # only the outermost concatenation is checked
        columns = [part for part in _parts(node) if isinstance(part, exp.Column)]
        if len(columns) < 2:
            continue
        lengths = [call("coalesce", call("strlen", cast(column.copy(), "VARCHAR")), number(0)) for column in columns]
        total: exp.Expr = lengths[0]
        for length in lengths[1:]:
            total = exp.Add(this=total, expression=length)
        wrong = exp.GT(this=exp.Paren(this=total), expression=number(bytes_max))
        checked = exp.Case(ifs=[exp.If(this=wrong, true=call("error", text(reason)))], default=node.copy())
        node.replace(exp.Paren(this=checked))


def _parts(node: exp.Expr) -> Iterator[exp.Expr]:
    """The operands of a chain of `||` and CONCAT."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if is_joining(part) or isinstance(part, exp.Paren | exp.Cast):
            waiting += [child for child in part.iter_expressions() if not isinstance(child, exp.DataType)]
        else:
            yield part


def is_joining(node: exp.Expr | None) -> bool:
    """Whether a node concatenates texts or lists."""
    return isinstance(node, exp.DPipe) or (isinstance(node, exp.Anonymous) and node.name.lower() in _JOINING)


def _is_collecting(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous):
        return canonical(node.name) in _COLLECTING
    return isinstance(node, exp.GroupConcat | exp.ArrayAgg)


def _is_bounded(window: exp.Window) -> bool:
    spec = window.args.get("spec") or _named_spec(window)
    if spec is None or str(spec.args.get("kind") or "").upper() != "ROWS":
        return False
    rows = 0.0
    for end in ("start", "end"):
        value = spec.args.get(end) or "CURRENT ROW"
        if isinstance(value, str) and value.upper() == "CURRENT ROW":
            continue
        count = literal_number(value) if isinstance(value, exp.Expr) else None
        if count is None:
            return False
        rows += count
    return rows <= WINDOW_ROWS_MAX


def _named_spec(window: exp.Window) -> exp.Expr | None:
    """The frame of the named window that a window refers to."""
    name = window.alias.lower()
    around = window.find_ancestor(exp.Select)
    while name and around is not None:
        for definition in around.args.get("windows") or ():
            if definition.this.name.lower() == name:
                spec = definition.args.get("spec")
                return spec if isinstance(spec, exp.Expr) else None
        around = around.find_ancestor(exp.Select)
    return None
