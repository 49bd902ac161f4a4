"""Lists the nodes of a tree. A statement is searched dozens of times before it runs; sqlglot's `find_all` is slow.

sqlglot passes each node through four generators. The lists here have the same nodes in the same order, breadth first,
and stay as they are while the tree is changed.
"""

from __future__ import annotations

from typing import TypeVar

from sqlglot import exp

Node = TypeVar("Node", bound=exp.Expr)
# Two of three values in nodes are of these classes; to find one in a set is cheaper than two `isinstance`.
_PLAIN = frozenset({str, bool, type(None)})


def all_nodes(tree: exp.Expr) -> list[exp.Expr]:
    """Every node of the tree, as `tree.walk()` gives them."""
    nodes, node_class, plain = [tree], exp.Expr, _PLAIN
    add = nodes.append
    for node in nodes:  # which grows meanwhile
        for value in node.args.values():
            if value.__class__ in plain:
                continue
            if isinstance(value, node_class):
                add(value)
            elif isinstance(value, list):
                for item in value:
                    if isinstance(item, node_class):
                        add(item)
    return nodes


def nodes_of(tree: exp.Expr, *kinds: type[Node]) -> list[Node]:
    """The nodes of these classes, as `tree.find_all(*kinds)` gives them."""
    return [node for node in all_nodes(tree) if isinstance(node, kinds)]
