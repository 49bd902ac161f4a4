"""Resolves the tables of a statement: the table and half of each reference, and the virtual columns it uses.

A name refers to a CTE of that name in scope, as in DuckDB; else to one of our tables; else it is an error.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from hybrid.config.table_config import Half
from hybrid.errors import NO_SUCH_COLUMN, NO_SUCH_TABLE, PARSE_ERROR, QueryError, suggestion
from hybrid.sql.nodes import nodes_of
from hybrid.sql.series import is_series, settle_series
from hybrid.sql.tokens import VIRTUAL

# The prefix of relations that replace table references. No user name may begin with it.
RESERVED = "_hy_"
# Pinot's name for the database of the tables.
_DATABASE = "default"
_BY_LOWER = {name.lower(): name for name in VIRTUAL}


@dataclass
class TableMention:
    """One reference to a table. `half` None is the whole table; `alias` names it in its SELECT.

    `relation` is its name in the rewritten statement; `virtual` the virtual columns that the statement uses.
    """

    table: str
    half: Half | None
    alias: str
    relation: str
    node: exp.Table
    virtual: set[str] = field(default_factory=set)

    @property
    def written(self) -> str:
        """The name as written in SQL: `orders` or `orders_OFFLINE`."""
        return self.table if self.half is None else f"{self.table}_{self.half}"


def resolve_tables(tree: exp.Query, names: Collection[str]) -> list[TableMention]:
    """Every table reference of `tree`, in the order of the text; each is renamed to its relation.

    QueryError 190 for a table that does not exist, 150 for anything but a plain table name.
    """
    _refuse_reserved(tree)
    nodes = [node for node in tree.find_all(exp.Table, bfs=False) if not _is_cte(node)]
    for series in filter(is_series, nodes):
        settle_series(series)
    nodes = [node for node in nodes if not is_series(node)]
    refs = [_resolve(node, place, names) for place, node in enumerate(nodes)]
    for ref in refs:
        _put_relation(ref)
    for column in nodes_of(tree, exp.Column):
        if column.db.lower() == _DATABASE and not column.catalog:
            column.set("db", None)
    _spread_virtual(tree, refs)
    return refs


def _refuse_reserved(tree: exp.Query) -> None:
    for node in nodes_of(tree, exp.CTE, exp.TableAlias, exp.Table):
        name = node.alias_or_name if isinstance(node, exp.CTE) else node.name
        if name.lower().startswith(RESERVED):
            raise QueryError(f"Names that begin with '{RESERVED}' are reserved: '{name}'.", pinot_code=PARSE_ERROR)


def _resolve(node: exp.Table, place: int, names: Collection[str]) -> TableMention:
    if not isinstance(node.this, exp.Identifier) or not node.name:
        raise QueryError(
            f"Only tables can be used in FROM; '{node.sql()}' is a function.",
            pinot_code=PARSE_ERROR,
            hint="UNNEST of a multi-value column, generate_series and range are the exceptions.",
        )
    if node.args.get("catalog") or (node.db and node.db.lower() != _DATABASE):
        raise QueryError(f"Table '{_qualified(node)}' does not exist: {_KNOWN_PLAIN}", pinot_code=NO_SUCH_TABLE)
    table, half = table_and_half(node.name, names)
    alias = node.alias or node.name
    return TableMention(table, half, alias, f"{RESERVED}rel_{place}", node)


_KNOWN_PLAIN = "tables are named without a catalog or schema."


def _qualified(node: exp.Table) -> str:
    return ".".join(part.name for part in node.parts)


def table_and_half(name: str, names: Collection[str]) -> tuple[str, Half | None]:
    """The table and half that a name in FROM means. QueryError 190 for no table."""
    plain = _known(name, names)
    if plain is not None:
        return plain, None
    for half in Half:
        stem = name[: -len(half.value) - 1]
        table = _known(stem, names) if name.upper().endswith(f"_{half.value}") else None
        if table is not None:
            return table, half
    raise QueryError(f"Table '{name}' does not exist.{suggestion(name, _spellings(names))}", pinot_code=NO_SUCH_TABLE)


def _spellings(names: Collection[str]) -> list[str]:
    return [*names, *(f"{name}_{half}" for name in names for half in Half)]


def _known(name: str, names: Collection[str]) -> str | None:
    """The table of that name, ignoring case if no name is equal; None without any."""
    return (
        name if name in names else next((candidate for candidate in names if candidate.lower() == name.lower()), None)
    )


def _put_relation(ref: TableMention) -> None:
    """Renames the reference to its relation; its alias, joins and samples stay."""
    ref.node.set("this", exp.to_identifier(ref.relation, quoted=True))
    ref.node.set("db", None)
    if not ref.node.alias:
        ref.node.set("alias", exp.TableAlias(this=exp.to_identifier(ref.alias, quoted=True)))


def _is_cte(node: exp.Table) -> bool:
    if node.args.get("db") or not isinstance(node.this, exp.Identifier):
        return False
    return any(name.lower() == node.name.lower() for name in _ctes_in_scope(node))


def _ctes_in_scope(node: exp.Expr) -> Iterator[str]:
    """The names of CTEs in scope at `node`: from every WITH around it, the CTEs before it."""
    inside: exp.Expr = node
    around = node.parent
    while around is not None:
        clause = inside if isinstance(inside, exp.With) else around.args.get("with_")
        if isinstance(clause, exp.With):
            yield from _visible(clause, node)
        inside, around = around, around.parent


def _visible(clause: exp.With, node: exp.Expr) -> Iterator[str]:
    for cte in clause.expressions:
        within = any(parent is cte for parent in _parents(node))
        if not within or clause.args.get("recursive"):
            yield cte.alias
        if within:
            return


def _parents(node: exp.Expr) -> Iterator[exp.Expr]:
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def _spread_virtual(tree: exp.Query, refs: list[TableMention]) -> None:
    """Records on each reference which virtual columns the statement uses, and normalizes their spelling."""
    for column in nodes_of(tree, exp.Column):
        name = _BY_LOWER.get(column.name.lower())
        if name is None:
            _refuse_sign(column.name)
            continue
        column.set("this", exp.to_identifier(name, quoted=True))
        for ref in _sources(column, refs):
            ref.virtual.add(name)


def _refuse_sign(name: str) -> None:
    """QueryError for names like `$1` and `#1`, which DuckDB would read as parameters and positions."""
    if name.startswith(("$", "#")):
        raise QueryError(f"Column '{name}' does not exist.{suggestion(name, VIRTUAL)}", pinot_code=NO_SUCH_COLUMN)


def _sources(column: exp.Column, refs: list[TableMention]) -> list[TableMention]:
    """The references that a virtual column can belong to, in the nearest SELECT around it that has any."""
    for select in (parent for parent in _parents(column) if isinstance(parent, exp.Select)):
        here = [ref for ref in refs if ref.node.find_ancestor(exp.Select) is select]
        fitting = [ref for ref in here if not column.table or ref.alias.lower() == column.table.lower()]
        if fitting:
            return fitting
    return []
