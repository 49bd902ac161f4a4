"""Writes a rewritten statement as Spark SQL that gives the rows that DuckDB gives.

Clause by clause: what has no rule here is refused by name and place, and never passed on as it stands. Expressions are
those of `sql.spark_sql`; the types on which they depend are DuckDB's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from hybrid.sql.calls import literal_number
from hybrid.sql.nodes import all_nodes, nodes_of
from hybrid.sql.series import is_series
from hybrid.sql.spark_expressions import ExpressionWriter, TypeSource
from hybrid.sql.spark_functions import refusal, start_of
from hybrid.sql.spark_text import backquoted

_JOINS = {"": "JOIN", "INNER": "JOIN", "CROSS": "CROSS JOIN", "SEMI": "LEFT SEMI JOIN", "ANTI": "LEFT ANTI JOIN"}
_SIDES = {"LEFT": "LEFT JOIN", "RIGHT": "RIGHT JOIN", "FULL": "FULL JOIN"}
_SET_WORDS = ((exp.Union, "UNION"), (exp.Intersect, "INTERSECT"), (exp.Except, "EXCEPT"))
_ELEMENT = "_hy_element"
_SELECT_PARTS = frozenset(
    ("with_", "expressions", "distinct", "from_", "joins", "where", "group", "having", "order", "limit", "offset")
)
_SET_PARTS = frozenset(("with_", "this", "expression", "distinct", "order", "limit", "offset", "side", "kind", "on"))
# The parts of nodes that have rules. A further part, as of a later SQL, changes what a node means.
_PARTS: dict[type[exp.Expr], frozenset[str]] = {
    exp.Column: frozenset(("this", "table")),
    exp.Anonymous: frozenset(("this", "expressions")),
    exp.In: frozenset(("this", "expressions", "query")),
    exp.Between: frozenset(("this", "low", "high")),
    exp.ILike: frozenset(("this", "expression", "negate")),
    exp.Case: frozenset(("this", "ifs", "default")),
    exp.If: frozenset(("this", "true")),
    exp.Cast: frozenset(("this", "to")),
    exp.TryCast: frozenset(("this", "to", "safe")),
    exp.Substring: frozenset(("this", "start", "length")),
    exp.Trim: frozenset(("this", "expression", "position")),
    exp.Lambda: frozenset(("this", "expressions")),
    exp.Exists: frozenset(("this",)),
    exp.Filter: frozenset(("this", "expression")),
    exp.Extract: frozenset(("this", "expression")),
    exp.Interval: frozenset(("this", "unit")),
    exp.Array: frozenset(("expressions", "bracket_notation")),
    exp.Ordered: frozenset(("this", "desc", "nulls_first")),
    exp.Limit: frozenset(("expression",)),
    exp.Offset: frozenset(("expression",)),
    exp.Distinct: frozenset(("expressions", "on")),
    exp.Order: frozenset(("this", "expressions")),
    exp.Where: frozenset(("this",)),
    exp.Having: frozenset(("this",)),
    exp.From: frozenset(("this",)),
    exp.Star: frozenset(("except_", "replace", "rename")),
    exp.CTE: frozenset(("this", "alias", "materialized")),
    exp.With: frozenset(("expressions", "recursive")),
    exp.Unnest: frozenset(("expressions", "alias")),
}
_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")


def spark_statement(tree: exp.Query, sql: str, types: TypeSource) -> str:
    """The statement as Spark SQL over temporary views named as its relations.

    `sql` is the text of its user, for the places in errors. QueryError (150, 700) for what Spark does not run.
    """
    writer = StatementWriter({}, sql, types)
    for node in all_nodes(tree):
        known = _PARTS.get(type(node))
        if known is not None and any(value and name not in known for name, value in node.args.items()):
            raise writer.refusal(node, "is written in a form that has no rule here")
    return writer.query(tree)


class StatementWriter(ExpressionWriter):
    """Writes queries."""

    def query(self, node: exp.Expr) -> str:
        """A SELECT or a set operation."""
        if isinstance(node, exp.Select):
            return self._select(node)
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node)
        if isinstance(node, exp.Subquery) and not set(filter(node.args.get, node.args)) - {"this"}:
            return f"({self.query(node.this)})"
        raise self.refusal(node)

    def subquery(self, node: exp.Expr) -> str:
        """A query in parentheses."""
        inner = node.this if isinstance(node, exp.Subquery) else node
        if isinstance(node, exp.Subquery) and set(filter(node.args.get, node.args)) - {"this"}:
            raise self.refusal(node)
        return f"({self.query(inner)})"

    def _select(self, node: exp.Select) -> str:
        self._require(node, _SELECT_PARTS)
        views = self._exploded(node)
        group, order = node.args.get("group"), node.args.get("order")
        results = [self._result(item, node) for item in node.expressions]
        written = [text.rpartition(" AS ")[0] or text for text in results]
        places = [] if any(item.find(exp.Star) for item in node.expressions) else written
        clauses = [self._with(node), f"SELECT {self._distinct(node)}{', '.join(results)}"]
        clauses += [f"{self._from(node)}{views}", self._where(node, "where", "WHERE"), self._group(group, written)]
        clauses += [self._where(node, "having", "HAVING"), self._order(order, places), *self._limits(node)]
        return " ".join(filter(None, clauses))

    def _exploded(self, node: exp.Select) -> str:
        """The lateral view of the elements of a list that the SELECT unnests; UNNEST becomes its column."""
        calls = [call for call in nodes_of(node, exp.Anonymous) if call.name.lower() == "unnest"]
        calls = [call for call in calls if call.find_ancestor(exp.Select) is node]
        if not calls:
            return ""
        lists = {self.write(call.expressions[0]) for call in calls if len(call.expressions) == 1}
        if len(lists) != 1 or node.args.get("from_") is None:
            raise self.refusal(calls[0], "unnests several lists at once")
        for call in calls:
            call.replace(exp.column(_ELEMENT))
        return f" LATERAL VIEW explode({lists.pop()}) _hy_elements AS {_ELEMENT}"

    def _set_operation(self, node: exp.SetOperation) -> str:
        self._require(node, _SET_PARTS)
        if any(node.args.get(name) for name in ("side", "kind", "on")):
            raise self.refusal(node)
        self._require_same_types(node)
        word = next(word for kind, word in _SET_WORDS if isinstance(node, kind))
        every = "" if node.args.get("distinct") else " ALL"
        left, right = (self._branch(side) for side in (node.this, node.expression))
        clauses = [self._with(node), f"{left} {word}{every} {right}", self._order(node.args.get("order"), [])]
        return " ".join(filter(None, [*clauses, *self._limits(node)]))

    def _branch(self, node: exp.Expr) -> str:
        written = self.query(node)
        return written if written.startswith("(") else f"({written})"

    def _require(self, node: exp.Expr, parts: frozenset[str]) -> None:
        for name in node.args:
            value = node.args.get(name)
            if value and name not in parts:
                word = name.strip("_").upper()
                part = value[0] if isinstance(value, list) else value
                place = start_of(part) if isinstance(part, exp.Expr) else start_of(node)
                raise refusal(self.sql, place, f"the clause {word}")

    def _require_same_types(self, node: exp.SetOperation) -> None:
        """QueryError for two sides with columns of different types, which Spark would convert by its own rules."""
        left, right = (self.source.columns(side) for side in (node.this, node.expression))
        if left is None or right is None:
            raise refusal(self.sql, start_of(node), "a set operation whose types are not known here")
        for one, other in zip(left, right, strict=False):
            if not _is_same_type(one, other):
                what = f"a set operation of {one} and {other}: CAST one of them"
                raise refusal(self.sql, start_of(node.expression), what)

    def _with(self, node: exp.Expr) -> str:
        clause = node.args.get("with_")
        if clause is None:
            return ""
        if clause.args.get("recursive"):
            raise refusal(self.sql, start_of(clause), "WITH RECURSIVE")
        return f"WITH {', '.join(self._cte(cte) for cte in clause.expressions)}"

    def _cte(self, cte: exp.CTE) -> str:
        return f"{self._alias(cte)} AS ({self.query(cte.this)})"

    def _alias(self, node: exp.Expr) -> str:
        alias = node.args["alias"]
        columns = ", ".join(backquoted(column.name) for column in alias.args.get("columns") or ())
        return f"{backquoted(alias.name)}{f'({columns})' if columns else ''}"

    def _distinct(self, node: exp.Select) -> str:
        distinct = node.args.get("distinct")
        if distinct is not None and distinct.args.get("on"):
            raise refusal(self.sql, start_of(distinct), "DISTINCT ON")
        return "DISTINCT " if distinct is not None else ""

    def _result(self, item: exp.Expr, select: exp.Select) -> str:
        star = item.this if isinstance(item, exp.Column) and isinstance(item.this, exp.Star) else item
        if isinstance(star, exp.Star):
            return self._star(item, star, select)
        if isinstance(item, exp.Subquery) and item.alias:
            return f"({self.query(item.this)}) AS {backquoted(item.alias)}"
        if isinstance(item, exp.Alias):
            return f"{self.write(item.this)} AS {backquoted(item.alias)}"
        return self.write(item)

    def _star(self, item: exp.Expr, star: exp.Star, select: exp.Select) -> str:
        if star.args.get("replace") or star.args.get("rename"):
            raise refusal(self.sql, start_of(item), "a star with REPLACE or RENAME")
        if any(join.args.get("using") for join in select.args.get("joins") or ()):
            raise refusal(self.sql, start_of(item), "a star over a join with USING, whose columns it orders otherwise")
        left_out = ", ".join(backquoted(name.name) for name in star.args.get("except_") or ())
        table = f"{backquoted(item.table)}." if isinstance(item, exp.Column) and item.table else ""
        return f"{table}*{f' EXCEPT ({left_out})' if left_out else ''}"

    def _from(self, node: exp.Select) -> str:
        source = node.args.get("from_")
        if source is None:
            return ""
        joins = node.args.get("joins") or ()
        return f"FROM {self._source(source.this)}{''.join(self._join(join) for join in joins)}"

    def _source(self, node: exp.Expr) -> str:
        if any(node.args.get(part) for part in ("joins", "sample", "pivots", "laterals", "ordinality", "only")):
            raise self.refusal(node)
        if isinstance(node, exp.Table) and is_series(node):
            return self._series(node)
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            return f"{backquoted(node.name)}{f' AS {self._alias(node)}' if node.alias else ''}"
        if isinstance(node, exp.Unnest):
            return self._unnested(node)
        if isinstance(node, exp.Subquery):
            return f"({self.query(node.this)}){f' AS {self._alias(node)}' if node.alias else ''}"
        raise self.refusal(node)

    def _series(self, node: exp.Table) -> str:
        """A series of whole numbers in FROM."""
        names = node.alias_column_names
        if len(names) != 1:
            raise self.refusal(node, "is written generate_series(...) AS name(column)")
        start, stop, step = (int(literal_number(part.unnest()) or 0) for part in node.this.expressions)
        stop -= ((step > 0) - (step < 0)) if node.this.name.lower() == "range" else 0
        is_empty = start > stop if step > 0 else start < stop
        values = "array()" if is_empty else f"sequence({start}L, {stop}L, {step}L)"
        return (
            f"(SELECT explode(CAST({values} AS array<bigint>)) AS {backquoted(names[0])}) AS {backquoted(node.alias)}"
        )

    def _unnested(self, node: exp.Unnest) -> str:
        """UNNEST of a list in FROM, beside the table that has it."""
        alias, columns = node.args.get("alias"), node.alias_column_names
        if len(node.expressions) != 1 or node.args.get("offset") or alias is None or len(columns) != 1:
            raise self.refusal(node, "is written UNNEST(list) AS name(column)")
        named = f"{backquoted(alias.name or '_hy_unnested')}({backquoted(columns[0])})"
        return f"LATERAL explode({self.write(node.expressions[0])}) AS {named}"

    def _join(self, node: exp.Join) -> str:
        method, side, kind = ((node.args.get(name) or "").upper() for name in ("method", "side", "kind"))
        on, using = node.args.get("on"), node.args.get("using")
        if method or node.args.get("match_condition") or node.args.get("global_") or node.args.get("hint"):
            raise refusal(self.sql, start_of(node), f"a {method or 'join of this kind'} JOIN".replace("  ", " "))
        if not (side or kind or on or using):
            return f", {self._source(node.this)}"
        if side and kind in {"", "OUTER"}:
            word = _SIDES.get(side)
        else:
            word = _JOINS.get(kind) if side in {"", "LEFT"} else None
        if word is None:
            raise refusal(self.sql, start_of(node), f"a {side} {kind} JOIN".replace("  ", " "))
        condition = f" ON {self.write(on)}" if on is not None else ""
        if using:
            condition = f" USING ({', '.join(backquoted(column.name) for column in using)})"
        return f" {word} {self._source(node.this)}{condition}"

    def _where(self, node: exp.Select, name: str, word: str) -> str:
        clause = node.args.get(name)
        return f"{word} {self.write(clause.this)}" if clause is not None else ""

    def _group(self, group: exp.Group | None, results: Sequence[str]) -> str:
        if group is None:
            return ""
        if any(group.args.get(name) for name in ("grouping_sets", "cube", "rollup", "totals", "all")):
            raise refusal(self.sql, start_of(group), "GROUP BY ALL, CUBE, ROLLUP and GROUPING SETS")
        # A key that is a result is written by its place: Spark does not find two equal lambdas equal.
        return f"GROUP BY {', '.join(self._key(key, results) for key in group.expressions)}"

    def _key(self, key: exp.Expr, results: Sequence[str]) -> str:
        written = self.write(key)
        for place, result in enumerate(results):
            if written in (result, f"({result})") and not isinstance(key, exp.Column | exp.Literal):
                return str(place + 1)
        return written

    def _order(self, order: exp.Order | None, results: Sequence[str]) -> str:
        if order is None:
            return ""
        return f"ORDER BY {', '.join(self._ordered(item, results) for item in order.expressions)}"

    def _ordered(self, item: exp.Expr, results: Sequence[str]) -> str:
        if not isinstance(item, exp.Ordered) or item.args.get("with_fill"):
            raise self.refusal(item)
        if isinstance(item.this, exp.Var) or (isinstance(item.this, exp.Column) and item.this.name.upper() == "ALL"):
            raise refusal(self.sql, start_of(item), "ORDER BY ALL")
        return f"{self._key(item.this, results)}{_direction(item)}"

    def ordered(self, item: exp.Expr) -> str:
        """An item of ORDER BY in a window."""
        return self._ordered(item, [])

    def _limits(self, node: exp.Expr) -> Iterable[str]:
        for name in ("limit", "offset"):
            clause = node.args.get(name)
            if clause is None:
                continue
            count = clause.expression.unnest() if isinstance(clause, exp.Limit | exp.Offset) else None
            if not isinstance(count, exp.Literal) or count.is_string or not count.name.isdigit():
                raise refusal(self.sql, start_of(clause), f"a computed {name.upper()}, a percentage, or FETCH")
            # Spark's limits have 32 bits; no result has more rows than that.
            yield f"{name.upper()} {min(int(count.name), 2**31 - 1)}"


def _direction(item: exp.Expr) -> str:
    return f" {'DESC' if item.args.get('desc') else 'ASC'} NULLS {'FIRST' if item.args.get('nulls_first') else 'LAST'}"


def _is_same_type(one: str, other: str) -> bool:
    return one == other or '"NULL"' in (one, other) or (one in _WHOLE and other in _WHOLE)
