"""How the text of a shell is split: quotes, comments, dot commands, unfinished input; as the parser reads it."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from hybrid.cli.shell.lexer import LexemeKind, lexemes
from hybrid.cli.shell.statements import ShellInput, is_complete, read_inputs, split_inputs, without_comments
from hybrid.schema.dialect import PinotReader


def statements(text: str) -> list[str]:
    """The statements of a whole text."""
    found, rest = split_inputs(text, at_end=True)
    assert rest == "" and not any(one.is_command for one in found)
    return [one.text for one in found]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("select 1; select 2", ["select 1", "select 2"]),
        ("select ';' x; select \"a;b\"", ["select ';' x", 'select "a;b"']),
        ("select 'it''s; so'; select 2;", ["select 'it''s; so'", "select 2"]),
        ("select e'it\\'s; so'; select 2", ["select e'it\\'s; so'", "select 2"]),
        ("select 'a\\'; select 2", ["select 'a\\'", "select 2"]),  # a backslash is an ordinary character
        ("select 1 -- no; end\n + 2; select 3", ["select 1 -- no; end\n + 2", "select 3"]),
        ("/* a; /* b; */ c; */ select 1;", ["/* a; /* b; */ c; */ select 1"]),
        (";; -- nothing\n; /* none; */ ;", []),
        ("select a\n.b from t;", ["select a\n.b from t"]),
        ("select 1; -- the end", ["select 1"]),
        ("select 1 as exit;", ["select 1 as exit"]),
        ("\ufeff".strip("\ufeff"), []),
    ],
)
def test_statements_end_at_a_semicolon(text: str, found: list[str]) -> None:
    assert statements(text) == found


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("select 1", "select 1"),
        ("select 1; sel", " sel"),
        ("select 'a;", "select 'a;"),
        ("select e'a\\';", "select e'a\\';"),
        ('select "a;', 'select "a;'),
        ("select 1 /* ;", "select 1 /* ;"),
        ("/* /* */ ;", "/* /* */ ;"),
        ("select 1 -- ;", "select 1 -- ;"),
        ("select 1; -- done", ""),
        ("", ""),
    ],
)
def test_what_is_unfinished_is_the_rest(text: str, rest: str) -> None:
    assert split_inputs(text)[1] == rest
    assert is_complete(text) is (rest == "")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (".tables\nselect 1;", [ShellInput("tables", True), ShellInput("select 1")]),
        ("  .schema orders;\n", [ShellInput("schema orders", True)]),
        ("-- why\n.tables", [ShellInput("tables", True)]),
        ("select 1 \\watch 2\nselect 3;", [ShellInput("watch 2", True, "select 1"), ShellInput("select 3")]),
        ("\\q", [ShellInput("q", True)]),
        ("select 1; quit", [ShellInput("select 1"), ShellInput("quit", True)]),
        ("EXIT;\n", [ShellInput("exit", True)]),
        ("help", [ShellInput("help", True)]),
        (".explain select 1;", [ShellInput("explain select 1", True)]),
        ("select '\\watch' x;", [ShellInput("select '\\watch' x")]),
    ],
)
def test_dot_commands_are_lines(text: str, found: list[ShellInput]) -> None:
    assert split_inputs(text, at_end=True) == (found, "")
    assert list(read_inputs(text.splitlines(keepends=True))) == found


def test_an_input_comes_as_soon_as_its_line_is_there() -> None:
    def lines() -> list[str]:
        taken: list[str] = []
        source = iter(["select 1\n", "+ 2; .5\n", "-- x\n", ".tables\n", "select 3"])

        def counting():
            for line in source:
                taken.append(line)
                yield line

        found = []
        for one in read_inputs(counting()):
            found.append(f"{len(taken)}:{one.text}")
        return found

    assert lines() == ["2:select 1\n+ 2", "5:.5\n-- x\n.tables\nselect 3"]


def test_an_unclosed_quote_is_run_at_the_end_and_refused_by_the_parser() -> None:
    assert split_inputs("select 'a", at_end=True) == ([ShellInput("select 'a")], "")


def test_comments_are_cut_out() -> None:
    assert without_comments("-- x\nSET a = '--b' /* c */") == "SET a = '--b'"


@pytest.mark.slow
def test_many_statements_of_one_line_take_no_time() -> None:
    assert len(statements("select 1;" * 5000)) == 5000


PARTS = st.sampled_from(
    [
        "'",
        "''",
        '"',
        "--",
        "/*",
        "*/",
        "\n",
        ";",
        "a",
        "e'",
        "E",
        "\\",
        " ",
        "$x",
        "1",
        "1.5e3",
        "#",
        "é",
        ".",
        "(",
        "n'",
    ]
)


@given(st.lists(PARTS, max_size=14).map("".join))
def test_quotes_and_comments_are_those_of_the_parser(text: str) -> None:
    """Every semicolon that ends a statement here does so for the parser, and the other way round."""
    try:
        tokens = PinotReader().tokenize(text)
    except TokenError:  # a quote or comment is not closed
        assert not all(part.closed for part in lexemes(text)) or "\\" in text
        return
    assume(all(part.closed for part in lexemes(text)))
    theirs = [token.start for token in tokens if token.token_type == TokenType.SEMICOLON]
    assert [part.start for part in lexemes(text) if part.kind is LexemeKind.SIGN and part.text == ";"] == theirs
    assert "".join(part.text for part in lexemes(text)) == text
