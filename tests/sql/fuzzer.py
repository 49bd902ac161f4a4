"""Makes statements that nobody would write: grown from a grammar, or known ones with their tokens changed.

Everything comes from one `random.Random`, so a seed says which statements are made.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

_TOKEN = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|[A-Za-z_$][\w$]*|\d+(?:\.\d+)?|<>|<=|>=|!=|\|\||::|->>|->|\S")
_COLUMNS = (
    "id",
    "i",
    "l",
    "f",
    "d",
    "s",
    "name",
    "b",
    "moment",
    "doc",
    "raw",
    "tags",
    "nums",
    "price",
    "qty",
    "ts",
    "*",
)
_VALUES = (
    "0", "1", "-1", "2.5", "1e308", "9223372036854775807", "9223372036854775808", "1e-5", "''", "'red'", "'x''y'",
    "'2021-09-24'", "'DAY'", "'yyyy-MM-dd'", "'1:DAYS:EPOCH'", "'$.a.b'", "'(a+)+$'", "'\x00'", "'ä\U0001f600'",
    "null", "true", "false", "[]", "[1, 2]", "{'a': 1}", "interval 1 day", "timestamp '2021-01-01'",
)  # fmt: skip
_OPERATORS = (
    "+",
    "-",
    "*",
    "/",
    "%",
    "//",
    "||",
    "=",
    "<>",
    "<",
    ">=",
    "and",
    "or",
    "like",
    "not like",
    "is",
    "in",
    "^",
)
_TYPES = (
    "int",
    "long",
    "float",
    "double",
    "string",
    "boolean",
    "timestamp",
    "big_decimal",
    "bytes",
    "json",
    "date",
    "x",
)
_WORDS = (
    "select", "from", "where", "group by", "order by", "having", "limit", "offset", "join", "on", "union all", "with",
    "as", "case when", "end", "over", "partition by", "filter", "distinct", "set", "option", "explain plan for", "(",
    ")", "[", "]", "{", "}", ",", ";", "--", "/*", "*/", "'", '"', "$", "#", "?", ":", "::", "@", "\\", "`", "parity",
    "read_text", "attach", "copy", "pragma", "getenv", "pivot", "unnest", "lateral", "values", "recursive", "exists",
    "any", "all", "qualify", "window", "tablesample", "at", "into", "columns", "lambda x:", "x ->", "default", "temp",
)  # fmt: skip


class Fuzzer:
    """An endless source of statements. `known` are those that are changed; `functions` names to call."""

    def __init__(self, seed: int, known: Sequence[str], functions: Sequence[str]) -> None:
        self._random = random.Random(seed)
        self._known, self._functions = list(known), list(functions)

    def statement(self) -> str:
        """The next one."""
        made = self._grown() if self._random.random() < 0.4 else self._random.choice(self._known)
        return self._changed(made) if self._random.random() < 0.7 else made

    def _grown(self) -> str:
        chance, expression = self._random.random, self._expression
        items = ", ".join(expression(3) for _ in range(self._random.randint(1, 3)))
        source = self._random.choice(("parity", "parity_REALTIME", "parity a, parity b", f"({self._simple()}) x"))
        text = f"select {'distinct ' * (chance() < 0.1)}{items} from {source}"
        text += f" where {expression(3)}" * (chance() < 0.5)
        text += f" group by {expression(2)}" * (chance() < 0.3) + f" having {expression(2)}" * (chance() < 0.1)
        text += f" order by {expression(2)}" * (chance() < 0.3)
        text += f" limit {self._random.choice(('0', '5', '5, 3', '-1', '1e9', expression(1)))}" * (chance() < 0.4)
        return text

    def _simple(self) -> str:
        return f"select {self._expression(1)} from parity"

    def _expression(self, depth: int) -> str:
        pick = self._random.choice
        if depth == 0 or self._random.random() < 0.2:
            return pick(_COLUMNS) if self._random.random() < 0.6 else pick(_VALUES)
        inner = [self._expression(depth - 1) for _ in range(self._random.randint(0, 4))] or [""]
        return pick(
            (
                f"{pick(self._functions)}({', '.join(inner)})",
                f"{pick(self._functions)}({', '.join(inner)})",
                f"({inner[0]} {pick(_OPERATORS)} {inner[-1]})",
                f"case when {inner[0]} then {inner[-1]} else {pick(_VALUES)} end",
                f"cast({inner[0]} as {pick(_TYPES)})",
                f"{inner[0]} between {inner[-1]} and {pick(_VALUES)}",
                f"{inner[0]} in ({', '.join(inner)})",
                f"{pick(self._functions)}({inner[0]}) over (partition by {inner[-1]})",
                f"{pick(self._functions)}({inner[0]}) filter (where {inner[-1]})",
                f"(select {inner[0]} from parity limit 1)",
                f"-{inner[0]}",
                f"not {inner[0]}",
            )
        )

    def _changed(self, statement: str) -> str:
        tokens = _TOKEN.findall(statement)
        for _ in range(self._random.choice((1, 1, 2, 4))):
            if tokens:
                self._change(tokens)
        return self._random.choice((" ", " ", " ", "\n", "/**/")).join(tokens)

    def _change(self, tokens: list[str]) -> None:
        place, pick = self._random.randrange(len(tokens)), self._random.choice
        other = self._random.randrange(len(tokens))
        kind = self._random.randrange(8)
        if kind == 0:
            del tokens[place]
        elif kind == 1:
            tokens.insert(place, tokens[other])
        elif kind == 2:
            tokens[place], tokens[other] = tokens[other], tokens[place]
        elif kind == 3:
            tokens[place] = pick(_WORDS)
        elif kind == 4:
            tokens.insert(place, pick(_WORDS))
        elif kind == 5:
            tokens[place] = pick((*_VALUES, *_COLUMNS, pick(self._functions)))
        elif kind == 6:
            spliced = _TOKEN.findall(pick(self._known))
            tokens[place:] = spliced[self._random.randrange(len(spliced) + 1) :]
        else:
            tokens[place] = self._bent(tokens[place])

    def _bent(self, token: str) -> str:
        """A token with a character changed, or many times itself."""
        if self._random.random() < 0.1:
            return token * self._random.choice((2, 100, 3000))
        place = self._random.randrange(len(token) + 1)
        return (
            token[:place] + chr(self._random.choice((0, 9, 39, 34, 40, 0x2028, 0xD7, 0x1F600, 92, 37))) + token[place:]
        )
