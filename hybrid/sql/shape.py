"""The outer shape of a statement: names of the result's columns, the default LIMIT, `*`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from hybrid.schema.schema import FieldSpec
from hybrid.schema.types import DataType
from hybrid.sql.calls import cast
from hybrid.sql.functions import is_aggregate_call
from hybrid.sql.names import constant_name, result_name
from hybrid.sql.nodes import nodes_of
from hybrid.sql.tables import TableMention

DEFAULT_LIMIT = 10


def outermost_select(tree: exp.Query) -> exp.Select:
    """The SELECT that names the result's columns: the first one of a set operation."""
    node: exp.Expr = tree
    while not isinstance(node, exp.Select):
        node = node.this
    return node


def name_columns(tree: exp.Query) -> None:
    """Names unnamed results as Pinot does, and resolves names in GROUP BY. Call it before functions are rewritten."""
    for select in nodes_of(tree, exp.Select):
        constants = [constant_name(item) for item in select.expressions]
        if constants and None not in constants:
            pairs = zip(select.expressions, constants, strict=True)
            select.set("expressions", [exp.alias_(_long(item), name, quoted=True) for item, name in pairs])
        else:
            select.set("expressions", [_named(item) for item in select.expressions])
        _group_by_names(select)


def _long(item: exp.Expr) -> exp.Expr:
    """A result that is a whole-number literal, as a LONG; any other result unchanged."""
    return (
        cast(item, "BIGINT") if isinstance(item, exp.Literal) and item.name.isdigit() and not item.is_string else item
    )


def _group_by_names(select: exp.Select) -> None:
    """Makes a name in GROUP BY mean the result of that name, as in Pinot, even if a column has it too."""
    named = {item.alias.lower(): item.this for item in select.expressions if isinstance(item, exp.Alias)}
    group = select.args.get("group")
    for key in list(group.expressions) if group else ():
        result = named.get(key.name.lower()) if isinstance(key, exp.Column) and not key.table else None
        if result is not None and not isinstance(result, exp.Literal | exp.Column):
            key.replace(exp.Paren(this=result.copy()))


def _named(item: exp.Expr) -> exp.Expr:
    if isinstance(item, exp.Alias | exp.Column | exp.Star | exp.Aliases) or item.find(exp.Star) is item:
        return item
    if isinstance(item, exp.Anonymous) and item.name.lower() in {"columns", "unnest"}:
        return item
    return exp.alias_(item, result_name(item), quoted=True)


def has_default_limit(tree: exp.Query) -> bool:
    """Whether Pinot's default LIMIT applies: the statement has none, and is not an aggregation of all rows to one."""
    if tree.args.get("limit") or tree.args.get("fetch"):
        return False
    return not (isinstance(tree, exp.Select) and _is_one_row(tree))


def set_limit(tree: exp.Query, rows_max: int) -> exp.Query:
    """The statement with this LIMIT on the outside. Changes the tree."""
    limited: exp.Query = tree.limit(rows_max, copy=False)
    return limited


def _is_one_row(select: exp.Select) -> bool:
    if select.args.get("group") or select.args.get("distinct"):
        return False
    return bool(select.expressions) and all(_is_aggregated(item.unalias(), select) for item in select.expressions)


def _is_aggregated(item: exp.Expr, select: exp.Select) -> bool:
    """Whether the expression contains an aggregate of `select` itself, not of a window or a subquery."""
    aggregations = [node for node in nodes_of(item, exp.Anonymous, exp.GroupConcat) if is_aggregate_call(node)]
    return any(node.find_ancestor(exp.Window, exp.Select) is select for node in aggregations)


def hide_virtual(refs: Sequence[TableMention]) -> None:
    """Excludes virtual columns, which a relation has when they are used, from `*` and `alias.*`."""
    for ref in refs:
        select = ref.node.find_ancestor(exp.Select)
        if select is None or not ref.virtual:
            continue
        for item in select.expressions:
            star = item.this if isinstance(item, exp.Column) and isinstance(item.this, exp.Star) else item
            is_of = not isinstance(item, exp.Column) or item.table.lower() == ref.alias.lower()
            if isinstance(star, exp.Star) and is_of:
                _exclude(star, sorted(ref.virtual))


def _exclude(star: exp.Star, names: Sequence[str]) -> None:
    excluded = list(star.args.get("except_") or [])
    excluded_names = {item.name for item in excluded}
    excluded += [exp.to_identifier(name, quoted=True) for name in names if name not in excluded_names]
    star.set("except_", excluded)


def stored_types(tree: exp.Query, fields: Mapping[str, FieldSpec]) -> dict[str, DataType]:
    """The data types of the result columns that are unchanged columns of tables, by the result's names.

    They are needed because JSON is text in DuckDB, and JSON for clients.
    """
    types: dict[str, DataType] = {}
    for item in outermost_select(tree).expressions:
        column = item.unalias()
        if isinstance(column, exp.Star) or (isinstance(column, exp.Column) and isinstance(column.this, exp.Star)):
            types.update({field.name: field.data_type for field in fields.values()})
        field = fields.get(column.name.lower()) if isinstance(column, exp.Column) else None
        if field is not None:
            types[item.alias_or_name] = field.data_type
        else:
            types.pop(item.alias_or_name, None)
    return types
