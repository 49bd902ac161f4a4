"""The nodes of a tree are those of sqlglot, in its order."""

from functools import cache

import pytest
from sqlglot import exp

from hybrid.errors import QueryError
from hybrid.sql.nodes import all_nodes, nodes_of
from hybrid.sql.statement import parse_statement
from tests.parity.fixtures import fixtures

KINDS = ((exp.Select,), (exp.Column, exp.Table), (exp.Anonymous, exp.Binary, exp.Literal), (exp.Expr,))


@cache
def trees() -> list[exp.Expr]:
    found: list[exp.Expr] = []
    for fixture in fixtures()[::3]:
        try:
            found.append(parse_statement(fixture.sql).tree)
        except QueryError:
            assert fixture.fails, fixture.sql
    return found


def test_every_node_in_the_order_of_sqlglot() -> None:
    assert len(trees()) > 100
    for tree in trees():
        assert [*map(id, all_nodes(tree))] == [id(node) for node in tree.walk()]


@pytest.mark.parametrize("kinds", KINDS, ids=lambda kinds: " ".join(kind.__name__ for kind in kinds))
def test_nodes_of_some_classes(kinds: tuple[type[exp.Expr], ...]) -> None:
    assert any(nodes_of(tree, *kinds) for tree in trees())
    for tree in trees():
        assert [*map(id, nodes_of(tree, *kinds))] == [id(node) for node in tree.find_all(*kinds)]


def test_the_list_stays_while_the_tree_is_changed() -> None:
    tree = parse_statement("SELECT a + 1, b FROM t WHERE c IN (d, 2)").tree
    for column in nodes_of(tree, exp.Column):
        column.replace(exp.Neg(this=column.copy()))
    assert tree.sql() == "SELECT -a + 1, -b FROM t WHERE -c IN (-d, 2)"
