"""A statement that begins with a comment is a statement, and not an option."""

from __future__ import annotations

import click
import pytest

from hybrid.cli.query import query


@pytest.mark.parametrize(
    ("args", "sql", "explain"),
    [
        (["-- what\nselect 1"], "-- what\nselect 1", False),
        (["--what\nselect 1", "--explain"], "--what\nselect 1", True),
        (["--explain", "--", "-- what\nselect 1"], "-- what\nselect 1", True),
        (["--as-of", "2 d", "-- it's\n select 1"], "-- it's\n select 1", False),
        (["--as-of=2 days", "select 1"], "select 1", False),
        (["select 1 -- what", "--explain"], "select 1 -- what", True),
    ],
)
def test_a_comment_before_the_statement(args: list[str], sql: str, explain: bool) -> None:
    found = query.make_context("query", list(args)).params
    assert (found["sql"], found["explain"]) == (sql, explain)


@pytest.mark.parametrize("args", [["--expalin", "select 1"], ["--nosuch"], ["-- a b", "-- c d"]])
def test_wrong_options_stay_errors(args: list[str]) -> None:
    with pytest.raises(click.UsageError):
        query.make_context("query", list(args))
