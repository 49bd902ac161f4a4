"""What a statement does with columns, where that decides in which form they are best read."""

from __future__ import annotations

from sqlglot import exp


def only_shown(tree: exp.Query) -> frozenset[str]:
    """Lower-case names of the columns that are shown, grouped and sorted by, and nothing else.

    They may be read in any form that groups, sorts and prints alike. None are known in statements of several SELECTs.
    """
    if not isinstance(tree, exp.Select) or len(list(tree.find_all(exp.Select))) > 1:
        return frozenset()
    used: dict[str, bool] = {}
    aliases: dict[str, set[str]] = {}
    for column in tree.find_all(exp.Column):
        name = column.name.lower()
        used[name] = used.get(name, True) and _is_shown(column)
        if isinstance(column.parent, exp.Alias):
            aliases.setdefault(name, set()).add(column.parent.alias.lower())
    # DuckDB lets other expressions use a column by the alias it is shown under.
    return frozenset(
        name for name, shown in used.items() if shown and all(used.get(alias, True) for alias in aliases.get(name, ()))
    )


def _is_shown(column: exp.Column) -> bool:
    around = column.parent
    if isinstance(around, exp.Alias):
        return isinstance(around.parent, exp.Select)
    return isinstance(around, exp.Select | exp.Group | exp.Ordered)
