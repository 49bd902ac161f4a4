"""The AST allow-list: checks a rewritten statement as DuckDB's own parser reads it.

Our parser and DuckDB's could read a malicious text differently. So DuckDB's tree is checked before anything runs: every
table, function and kind of source in it must be on a list.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from hybrid.errors import NO_SUCH_TABLE, PARSE_ERROR, VALIDATION, QueryError
from hybrid.query.connection import quoted
from hybrid.sql.allowed import ALLOWED
from hybrid.sql.series import is_bounded_series

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_SOURCES = frozenset({"BASE_TABLE", "SUBQUERY", "JOIN", "EMPTY", "TABLE_FUNCTION", "EXPRESSION_LIST"})
_REFUSED_CLASSES = frozenset({"PARAMETER", "POSITIONAL_REFERENCE"})
_CHECKED = "unnest"
_TABLE_FUNCTIONS = frozenset({_CHECKED})


def check_statement(connection: DuckDBPyConnection, sql: str, relations: Collection[str]) -> None:
    """QueryError unless `sql` is one SELECT over `relations` (and its own CTEs) that calls allowed functions only."""
    row = connection.execute(f"SELECT json_serialize_sql({quoted(sql)})").fetchone()
    assert row is not None
    tree = json.loads(row[0])
    if tree.get("error"):
        message = str(tree.get("error_message", "")).splitlines()[0]
        raise QueryError(f"The statement cannot be read: {message}", pinot_code=PARSE_ERROR)
    if len(tree["statements"]) != 1:
        raise QueryError("One statement at a time.", pinot_code=PARSE_ERROR)
    names = {name.lower() for name in relations} | {name.lower() for name in _cte_names(tree)}
    for node in _nodes(tree):
        _check_node(node, names)


def _check_node(node: dict[str, Any], known: Collection[str]) -> None:
    if node.get("type") == "TABLE_FUNCTION" and is_bounded_series(node["function"]):
        node["function"]["function_name"] = _CHECKED  # elsewhere the function is not allowed
    name = node.get("function_name")
    if isinstance(name, str) and (name.lower() not in ALLOWED or node.get("schema") or node.get("catalog")):
        raise QueryError(f"Function '{name}' is not allowed.", pinot_code=VALIDATION)
    if node.get("class") in _REFUSED_CLASSES:
        raise QueryError("Parameters and positions are not supported; write names and values.", pinot_code=PARSE_ERROR)
    kind = node.get("type")
    if kind == "BASE_TABLE":
        path = node.get("qualified_name", {}).get("path", [])
        if len(path) != 1 or str(path[0]).lower() not in known or node.get("at_clause"):
            raise QueryError(f"Table '{'.'.join(map(str, path))}' does not exist.", pinot_code=NO_SUCH_TABLE)
    elif kind == "TABLE_FUNCTION" and node["function"].get("function_name") not in _TABLE_FUNCTIONS:
        raise QueryError("Only tables can be used in FROM; a function cannot.", pinot_code=PARSE_ERROR)
    elif "sample" in node and "alias" in node and "class" not in node and kind not in _SOURCES:
        raise QueryError(f"'{kind}' cannot be used in FROM.", pinot_code=PARSE_ERROR)


def _cte_names(tree: Any) -> Iterator[str]:
    for node in _nodes(tree):
        for entry in (node.get("cte_map") or {}).get("map") or ():
            yield str(entry["key"])


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Every object of the tree."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)
