"""Parses one statement: `SET k = v;` prefixes, `EXPLAIN PLAN FOR`, the SELECT, a trailing `OPTION(k = v)`.

A text that cannot be parsed is a QueryError with Pinot's code 150 that names line, column and the text near it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

from hybrid.errors import PARSE_ERROR, QueryError
from hybrid.expression.rounding import rounding_notes
from hybrid.schema.dialect import PinotReader
from hybrid.sql.arity import unread_call
from hybrid.sql.gapfill import rewrite_gapfill
from hybrid.sql.parameters import BoundValues, Mark, mark_at, misplaced, put_values, with_marks
from hybrid.sql.tokens import check_text, error_at, tokens_of
from hybrid.sql.vocabulary import misspelled_clause, refuse_misspelled_options

# Trees are traversed recursively in many places, here, in sqlglot and in DuckDB.
_DEPTH_MAX = 150
_HINT = "Only SELECT is understood here, with SET and EXPLAIN PLAN FOR before it and OPTION(...) behind it."


@dataclass(frozen=True)
class Statement:
    """A parsed statement. `options` are from SET and OPTION, by lower-case name; the owner may change `tree`.

    `notes` are warnings about functions that may not mean what was meant.
    """

    tree: exp.Query
    text: str
    options: Mapping[str, str] = field(default_factory=dict)
    explain: bool = False
    notes: tuple[str, ...] = ()


def parse_statement(sql: str, values: BoundValues | None = None) -> Statement:
    """Parses the one statement in `sql`, with `values` for its parameters.

    QueryError (150) for no statement, several, or anything but a SELECT.
    """
    check_text(sql)
    parts = [part for part in _split(with_marks(sql, tokens_of(sql), values), TokenType.SEMICOLON) if part]
    options: dict[str, str] = {}
    for part in [part for part in parts if _word(part[0]) == "SET"]:  # Grafana's plugin writes SET after the statement
        options.update(_setting(sql, part))
        parts.remove(part)
    if not parts:
        raise QueryError("There is no statement to run.", pinot_code=PARSE_ERROR, hint=_HINT)
    if len(parts) > 1:
        raise error_at(sql, parts[1][0].start, "One statement at a time: a second one begins")
    body, behind, more = parts[0], dict[str, str](), True
    while more:
        body, more = _cut_option(sql, body, behind)
    options.update(behind)
    refuse_misspelled_options(options)
    explain = _is_explain(body)
    if explain:
        body = body[3:]
    tree = _parse(sql, body)
    if values:
        put_values(sql, tree, body, values)
    if "gapfill" in sql.lower().replace("_", ""):
        tree = rewrite_gapfill(tree)
    notes = rounding_notes(tree) if "round" in sql.lower() else ()
    return Statement(tree, sql, options, explain, notes)


def _split(tokens: list[Token], at: TokenType) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == at:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _word(token: Token) -> str:
    return token.text.upper() if token.token_type not in {TokenType.STRING, TokenType.IDENTIFIER} else ""


def _setting(sql: str, tokens: list[Token]) -> dict[str, str]:
    _refuse_marks(sql, tokens)
    words = [token.text for token in tokens[1:]]
    if len(words) < 3 or words[1] != "=":
        raise error_at(sql, tokens[0].start, "SET is written `SET name = value;`; this is not")
    return {words[0].lower(): "".join(words[2:])}


def _cut_option(sql: str, tokens: list[Token], options: dict[str, str]) -> tuple[list[Token], bool]:
    """Cuts off a trailing OPTION(...) and adds it to `options`, where a later OPTION wins; whether there was one."""
    starts = [
        place
        for place, token in enumerate(tokens[:-1])
        if _word(token) == "OPTION" and place and tokens[place + 1].token_type == TokenType.L_PAREN
    ]
    if not starts or tokens[-1].token_type != TokenType.R_PAREN:
        return tokens, False
    inside = tokens[starts[-1] + 2 : -1]
    if any(token.token_type in {TokenType.L_PAREN, TokenType.R_PAREN} for token in inside):
        return tokens, False
    _refuse_marks(sql, inside)
    settings: dict[str, str] = {}
    for pair in _split(inside, TokenType.COMMA):  # by tokens, because a quoted value may contain any character
        equals = next((place for place, token in enumerate(pair) if token.token_type == TokenType.EQ), 0)
        if not equals:
            raise error_at(sql, tokens[starts[-1]].start, "OPTION is written `OPTION(name = value)`; this is not")
        name, value = ("".join(token.text for token in part) for part in (pair[:equals], pair[equals + 1 :]))
        settings[name.lower()] = value
    options.update({name: value for name, value in settings.items() if name not in options})
    return tokens[: starts[-1]], True


def _refuse_marks(sql: str, tokens: list[Token]) -> None:
    mark = next((token for token in tokens if isinstance(token.text, Mark)), None)
    if mark is not None:
        raise misplaced(sql, mark, "cannot stand in SET and OPTION")


def _is_explain(tokens: list[Token]) -> bool:
    return [_word(token) for token in tokens[:3]] == ["EXPLAIN", "PLAN", "FOR"]


def _parse(sql: str, tokens: list[Token]) -> exp.Query:
    if not tokens:
        raise error_at(sql, len(sql), "A SELECT is expected")
    if _word(tokens[0]) not in {"SELECT", "WITH", "FROM", "("}:
        hint = misspelled_clause([tokens[0].text]) or _HINT
        raise error_at(sql, tokens[0].start, f"A statement must be a SELECT; '{tokens[0].text}' is not run", hint)
    try:
        trees = PinotReader().parser().parse(tokens, sql)
    except ParseError as error:
        mark = mark_at(tokens, error)
        raise unreadable(sql, error) if mark is None else misplaced(sql, mark) from None
    except RecursionError:
        raise _too_deep() from None
    except Exception as error:  # sqlglot fails on some texts that it should refuse: `{: 1}`
        raise error_at(sql, tokens[0].start, "The statement cannot be read: it begins", _HINT) from error
    tree = trees[0] if len(trees) == 1 else None
    while isinstance(tree, exp.Subquery) and set(filter(tree.args.get, tree.args)) == {"this"}:
        tree = tree.this  # parentheses around the whole statement
    if not isinstance(tree, exp.Query):
        raise error_at(sql, tokens[0].start, "A statement must be a SELECT; this is not one", _HINT)
    refuse_depth(tree)
    return tree


def refuse_depth(tree: exp.Expr) -> None:
    """QueryError (150) for a tree that is too deep to traverse."""
    if _depth(tree) > _DEPTH_MAX:
        raise _too_deep()


def _depth(tree: exp.Expr) -> int:
    """The depth of the tree; a chain of AND, OR or UNION counts once, because it is traversed iteratively."""
    deepest, waiting = 0, [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        joined = isinstance(node, exp.Connector | exp.SetOperation)
        waiting += [(child, depth + (not (joined and type(child) is type(node)))) for child in node.iter_expressions()]
    return deepest


def _too_deep() -> QueryError:
    return QueryError("The statement is nested too deeply.", pinot_code=PARSE_ERROR)


def unreadable(sql: str, error: ParseError, *, has_clauses: bool = True) -> QueryError:
    """The QueryError (150) for an error of the parser, with the position in the text.

    `has_clauses`: the text is a statement, in which the keyword of a clause may be misspelled.
    """
    details = error.errors[0] if error.errors else {}
    line, column = details.get("line"), details.get("col")
    reason = _in_words(str(details.get("description") or ""))
    if line is None or column is None:
        return QueryError(f"The statement cannot be read: {reason}.", pinot_code=PARSE_ERROR)
    starts = [0, *(place + 1 for place, sign in enumerate(sql) if sign == "\n")]
    # sqlglot gives the end of a token, and names the last one when the text ends too early.
    end = starts[min(line, len(starts)) - 1] + column
    call = unread_call(sql[: end - 1] if sql[end - 1 : end] == ")" else sql[:end])
    if call is not None:
        return error_at(sql, max(0, end - len(str(details.get("highlight") or " "))), f"Cannot read it: {call}")
    hint = misspelled_clause(_last_words(sql[:end])) if has_clauses else None
    if not sql[end:].strip(" \t\n;"):
        unexpected = reason.startswith("this is not expected")
        return error_at(
            sql, end - len(str(details.get("highlight"))) if unexpected else end, f"Cannot read it: {reason}", hint
        )
    return error_at(sql, max(0, end - len(str(details.get("highlight") or " "))), f"Cannot read it: {reason}", hint)


def _last_words(text: str) -> list[str]:
    """The last two words of a text, the later first; what is quoted is none, and neither is the name of a table."""
    found = re.findall(r"""'[^']*'|"[^"]*"|\b(?:from|join)\s+\w+|([A-Za-z_]\w*)""", text, re.IGNORECASE)
    return [word for word in found[:-3:-1] if word]


def _in_words(reason: str) -> str:
    """A message of sqlglot, reworded for users."""
    if reason.startswith("Required keyword"):
        return "something is missing"
    if reason.startswith("Expecting ") or reason.startswith("Expected "):
        return f"'{reason.split(' ', 1)[1].rstrip('.')}' is expected"
    if "Unexpected token" in reason:
        return "this is not expected"
    return reason.rstrip(".") or "this is not SQL"
