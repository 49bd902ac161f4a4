"""How a statement uses columns, which decides in which form they are read."""

from __future__ import annotations

from sqlglot import exp

from hybrid.sql.nodes import all_nodes
from hybrid.sql.series import is_series


def only_shown(tree: exp.Query) -> frozenset[str]:
    """Lower-case names of the columns that are only shown, counted, grouped and sorted by.

    They may be read in any form that groups, sorts and prints alike. Empty for statements with several SELECTs.
    """
    nodes = all_nodes(tree)
    if not isinstance(tree, exp.Select) or sum(isinstance(node, exp.Select) for node in nodes) > 1:
        return frozenset()
    used: dict[str, bool] = {}
    aliases: dict[str, set[str]] = {}
    for column in (node for node in nodes if isinstance(node, exp.Column)):
        name = column.name.lower()
        used[name] = used.get(name, True) and _is_shown(column)
        if isinstance(column.parent, exp.Alias):
            aliases.setdefault(name, set()).add(column.parent.alias.lower())
    # In DuckDB other expressions may use a column by its alias.
    return frozenset(
        name for name, shown in used.items() if shown and all(used.get(alias, True) for alias in aliases.get(name, ()))
    )


def _is_shown(column: exp.Column) -> bool:
    around = column.parent
    if isinstance(around, exp.Alias):
        return isinstance(around.parent, exp.Select)
    if isinstance(around, exp.Distinct):
        around = around.parent
    if isinstance(around, exp.Anonymous):
        return around.name.lower() == "count"
    return isinstance(around, exp.Select | exp.Group | exp.Ordered)


def needed_columns(tree: exp.Query) -> frozenset[str] | None:
    """Lower-case names that include all columns a statement can need; None: it may need any.

    A table's name means all of its columns in DuckDB. Stars, NATURAL joins, PIVOT and column aliases depend on columns
    that are not named.
    """
    nodes = all_nodes(tree)
    if any(_goes_by_all(node) for node in nodes if isinstance(node, exp.Star | exp.Join | exp.Table | exp.Pivot)):
        return None
    names = frozenset(node.name.lower() for node in nodes if isinstance(node, exp.Identifier))
    columns = {node.name.lower() for node in nodes if isinstance(node, exp.Column)}
    tables = {node.alias_or_name.lower() for node in nodes if isinstance(node, exp.Table | exp.Subquery | exp.CTE)}
    calls = {node.name.lower() for node in nodes if isinstance(node, exp.Anonymous)}
    return None if columns & tables or "columns" in calls else names


def _goes_by_all(node: exp.Expr) -> bool:
    if isinstance(node, exp.Star):
        return not (isinstance(node.parent, exp.Anonymous) and node.parent.name.lower() == "count")
    if isinstance(node, exp.Join):
        return bool(node.method)  # for example NATURAL
    is_numbers = isinstance(node, exp.Table) and is_series(node)
    return isinstance(node, exp.Pivot) or (bool(node.alias_column_names) and not is_numbers)
