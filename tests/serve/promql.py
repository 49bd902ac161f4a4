"""A small parser of PromQL: it finds the mistakes of `promtool check rules` that alerts and dashboards can have."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<duration>\d+(?:ms|[smhdwy])(?:\d+(?:ms|[smhdw]))*)
    | (?P<number>\d+(?:\.\d+)?(?:e[+-]?\d+)?)
    | (?P<name>[A-Za-z_:][\w:]*)
    | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<sign>=~|!~|==|!=|>=|<=|[-+*/%^<>=(){}\[\],:])
    )""",
    re.VERBOSE,
)
FUNCTIONS = {
    "abs": 1, "changes": 1, "clamp_min": 2, "delta": 1, "histogram_quantile": 2, "increase": 1, "max_over_time": 1,
    "rate": 1, "time": 0, "vector": 1,
}  # fmt: skip
_OF_RANGES = {"changes", "delta", "increase", "max_over_time", "rate"}
_AGGREGATIONS = {"sum", "max", "min", "avg", "count", "topk", "quantile"}
_PRECEDENCE = [
    {"or"}, {"and", "unless"}, {"==", "!=", ">", "<", ">=", "<="}, {"+", "-"}, {"*", "/", "%"},
]  # fmt: skip


@dataclass
class Selector:
    """A metric with the labels that its matchers name, and with their texts."""

    metric: str
    labels: dict[str, str] = field(default_factory=dict)
    is_range: bool = False


@dataclass
class Expression:
    """What an expression names."""

    selectors: list[Selector] = field(default_factory=list)
    grouped_by: set[str] = field(default_factory=set)


def parse(text: str) -> Expression:
    """The metrics and labels of an expression. ValueError when it is none."""
    parser = _Parser(text)
    parser.expression()
    if parser.token is not None:
        raise ValueError(f"{text!r}: {parser.token!r} is too much")
    return parser.found


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._place = text, 0
        self.found = Expression()
        self.token: str | None = None
        self._kind: str | None = None
        self._next()

    def _next(self) -> str | None:
        before = self.token
        if not self._text[self._place :].strip():
            self.token = self._kind = None
            return before
        match = _TOKEN.match(self._text, self._place)
        if match is None:
            raise ValueError(f"{self._text!r}: cannot read {self._text[self._place :]!r}")
        self._place, self._kind, self.token = match.end(), match.lastgroup, match[match.lastgroup or 0]
        return before

    def _take(self, *wanted: str) -> str:
        if self.token not in wanted:
            raise ValueError(f"{self._text!r}: {self.token!r} where {wanted} belongs")
        return self._next() or ""

    def _take_kind(self, kind: str) -> str:
        if self._kind != kind:
            raise ValueError(f"{self._text!r}: {self.token!r} where a {kind} belongs")
        return self._next() or ""

    def expression(self, level: int = 0) -> None:
        if level == len(_PRECEDENCE):
            self._operand()
            return
        self.expression(level + 1)
        while self.token in _PRECEDENCE[level]:
            self._next()
            if self.token in ("on", "ignoring"):
                self._next()
                self.found.grouped_by |= set(self._names())
            self.expression(level + 1)

    def _operand(self) -> None:
        if self.token == "-":
            self._next()
        if self.token == "(":
            self._next()
            self.expression()
            self._take(")")
        elif self._kind == "number":
            self._next()
        elif self.token in _AGGREGATIONS:
            self._aggregation()
        elif self._kind == "name" and self._text[self._place :].lstrip().startswith("("):
            self._call()
        else:
            self._selector()

    def _aggregation(self) -> None:
        self._next()
        if self.token in ("by", "without"):
            self._next()
            self.found.grouped_by |= set(self._names())
        self._take("(")
        self.expression()
        while self.token == ",":
            self._next()
            self.expression()
        self._take(")")

    def _call(self) -> None:
        name = self._take(*FUNCTIONS)
        self._take("(")
        count = 0
        while self.token != ")":
            before = len(self.found.selectors)
            self.expression()
            count += 1
            if name in _OF_RANGES and not all(one.is_range for one in self.found.selectors[before:]):
                raise ValueError(f"{self._text!r}: {name}() takes a range")
            if self.token == ",":
                self._next()
        self._take(")")
        if count != FUNCTIONS[name]:
            raise ValueError(f"{self._text!r}: {name}() takes {FUNCTIONS[name]} arguments")

    def _selector(self) -> None:
        selector = Selector(self._take_kind("name"))
        self.found.selectors.append(selector)
        if self.token == "{":
            self._next()
            while self.token != "}":
                label = self._take_kind("name")
                self._take("=", "!=", "=~", "!~")
                selector.labels[label] = self._take_kind("text")[1:-1]
                if self.token != "}":
                    self._take(",")
            self._next()
        if self.token == "[":
            self._next()
            self._take_kind("duration")
            self._take("]")
            selector.is_range = True
        if self.token == "offset":
            self._next()
            self._take_kind("duration")

    def _names(self) -> list[str]:
        self._take("(")
        names = [self._take_kind("name")]
        while self.token == ",":
            self._next()
            names.append(self._take_kind("name"))
        self._take(")")
        return names
