"""Query parameters: `:name`, `$name` and `?` in a statement stand for values that come beside its text.

A value never becomes text of the statement. Its place is marked in the tokens, so that the parser sees one literal
there, and the literal is replaced in the parsed tree by the value's own typed literal. A mark that is not a literal of
the tree (a name of a table or column) is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

from hybrid.errors import VALIDATION, QueryError, suggestion
from hybrid.progress import counted
from hybrid.sql.calls import cast, text
from hybrid.sql.nodes import nodes_of
from hybrid.sql.parameter_values import LiteralKind, Value, value_of
from hybrid.sql.tokens import VIRTUAL, error_at, tokens_of

# The values of a statement's parameters: by name, or in the order of its question marks.
Parameters: TypeAlias = Mapping[str, Any] | Sequence[Any]
# One value for each place of a parameter in the text.
BoundValues: TypeAlias = tuple[Value, ...]

_VALUES_MAX, _TEXT_MAX = 25_000, 1_000_000
_KEPT_TEXT_MAX = 20_000
_HINT = 'A value comes with its name: {"sql": "... = :x", "params": {"x": 1}}, hybrid query --param x=1.'
_NAMES_HINT = "A parameter is a value. Names of tables and columns are written in the statement."
_VIRTUAL = frozenset(name.lower() for name in VIRTUAL)
_COMPARED = frozenset(
    (
        TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE, TokenType.BETWEEN,
        TokenType.AND,
    )
)  # fmt: skip
# Behind these a colon separates two operands.
_OPERANDS = frozenset(
    (
        TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER, TokenType.R_PAREN,
        TokenType.R_BRACKET, TokenType.R_BRACE,
    )
)  # fmt: skip
_QUOTED = frozenset((TokenType.STRING, TokenType.IDENTIFIER))
_OPENED = frozenset((TokenType.L_BRACKET, TokenType.L_BRACE))
_CLOSED = frozenset((TokenType.R_BRACKET, TokenType.R_BRACE))
# A negative number beside one of these needs no parentheses.
_LOOSE = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.Limit, exp.Offset, exp.Select,
    exp.Alias, exp.Anonymous, exp.Tuple, exp.Cast, exp.Case, exp.If, exp.Paren,
)  # fmt: skip
# Where an expression stands as a value. Elsewhere a literal could be written as something else than a literal.
_VALUE_PARENTS = frozenset(
    (
        *_LOOSE, exp.Like, exp.ILike, exp.SimilarTo, exp.RegexpLike, exp.Escape, exp.NullSafeEQ, exp.NullSafeNEQ,
        exp.And, exp.Or, exp.Not, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Pow, exp.DPipe,
        exp.TryCast, exp.Where, exp.Having, exp.Array, exp.Coalesce, exp.AtTimeZone, exp.Trim, exp.Substring,
        exp.GroupConcat, exp.Lag, exp.Lead, exp.NthValue, exp.FirstValue, exp.LastValue,
    )
)  # fmt: skip


class Slot(NamedTuple):
    """A place of a parameter. `name` None: a question mark. `is_compared`: it stands behind a comparison."""

    name: str | None
    is_compared: bool


class Mark(str):
    """The text of a token that stands for a parameter; `slot` is its place among all of the statement."""

    slot: int = 0


class _Place(NamedTuple):
    """A slot among tokens: those from `first` to before `end`, then `rest`, which a question mark has swallowed."""

    first: int
    end: int
    slot: Slot
    rest: TokenType | None = None


def bind(sql: str, parameters: Parameters | None) -> BoundValues | None:
    """The value of each place of a parameter in a statement; None without parameters.

    QueryError (700) names a parameter without a value, and a value without a parameter.
    """
    if parameters is None:
        return None
    slots = slots_of(sql)
    if isinstance(parameters, Mapping):
        values = _by_name(slots, parameters)
    elif isinstance(parameters, Sequence) and not isinstance(parameters, str | bytes | bytearray):
        values = _by_order(slots, parameters)
    else:
        message = f"Parameters are given by name or as a list, not as a {type(parameters).__name__}."
        raise QueryError(message, pinot_code=VALIDATION)
    count, size = _sizes(values)
    if count > _VALUES_MAX or size > _TEXT_MAX:
        message = f"The parameters hold more than {_VALUES_MAX} values or {_TEXT_MAX} characters."
        raise QueryError(message, pinot_code=VALIDATION)
    return values


def slots_of(sql: str) -> tuple[Slot, ...]:
    """The places of parameters in a statement, in order. QueryError (150) for a text without tokens."""
    return _kept_slots(sql) if len(sql) <= _KEPT_TEXT_MAX else _read_slots(sql)


def _read_slots(sql: str) -> tuple[Slot, ...]:
    return tuple(place.slot for place in _places(tokens_of(sql)))


_kept_slots = lru_cache(maxsize=256)(_read_slots)


def parameter_names(sql: str) -> frozenset[str]:
    """The names of a statement's parameters."""
    return frozenset(slot.name for slot in slots_of(sql) if slot.name is not None)


def with_marks(sql: str, tokens: list[Token], values: BoundValues | None) -> list[Token]:
    """The tokens, with a literal in each place of a parameter. QueryError (700) for one without a value."""
    if values is None and not (":" in sql or "?" in sql or "$" in sql):
        return tokens
    places = list(_places(tokens))
    if not places:
        return tokens
    if values is None:
        _refuse_valueless([place.slot for place in places])
        return tokens  # the names of misspelled virtual columns
    marked: list[Token] = []
    end = 0
    for number, (place, value) in enumerate(zip(places, values, strict=True)):
        marked += tokens[end : place.first]
        end = place.end
        marked += _mark(tokens[place.first : end], number, value, place.rest)
    return marked + tokens[end:]


def put_values(sql: str, tree: exp.Query, tokens: Sequence[Token], values: BoundValues) -> None:
    """Puts the values' literals in the places of their marks. QueryError (150) for a mark that is no value there."""
    found: set[int] = set()
    for node in nodes_of(tree, exp.Literal):
        mark = node.this
        if isinstance(mark, Mark):
            found.add(mark.slot)
            _refuse_ordinal(sql, tokens, node, mark)
            if type(node.parent) not in _VALUE_PARENTS:
                raise misplaced(sql, _token_of(tokens, mark))
            _put(sql, tokens, node, mark, values[mark.slot])
    for condition in nodes_of(tree, exp.In):
        if _is_empty(condition):
            condition.replace(exp.false())
    lost = next((token for token in tokens if isinstance(token.text, Mark) and token.text.slot not in found), None)
    if lost is not None:
        raise misplaced(sql, lost)


def mark_at(tokens: Sequence[Token], error: ParseError) -> Token | None:
    """The mark whose place an error of the parser names, or None."""
    details = error.errors[0] if error.errors else {}
    place = details.get("line"), details.get("col")
    marks = (token for token in tokens if isinstance(token.text, Mark))
    return next((token for token in marks if (token.line, token.col) == place), None)


def misplaced(sql: str, token: Token, message: str = "cannot stand here") -> QueryError:
    """The error of a parameter where no value can stand; it names the parameter and its place."""
    written = sql[token.start : token.end + 1]
    return error_at(sql, token.start, f"Parameter '{written.lstrip(':$')}' {message}", _NAMES_HINT)


def _by_name(slots: Sequence[Slot], given: Mapping[str, Any]) -> BoundValues:
    names = [slot.name for slot in slots]
    if None in names:
        raise QueryError("A '?' takes its value from a list, not from values by name.", pinot_code=VALIDATION)
    _refuse_valueless([slot for slot in slots if slot.name not in given], given)
    surplus = [name for name in given if name not in names]
    if surplus:
        known = [name for name in names if name is not None and name not in given]
        message = (
            f"The statement has no parameter '{surplus[0]}'.{suggestion(str(surplus[0]), known or map(str, names))}"
        )
        raise QueryError(message, pinot_code=VALIDATION)
    values = {name: value_of(str(name), value) for name, value in given.items()}
    return tuple(values[str(name)] for name in names)


def _by_order(slots: Sequence[Slot], given: Sequence[Any]) -> BoundValues:
    named = next((slot.name for slot in slots if slot.name is not None), None)
    if named is not None:
        message = f"Parameter '{named}' has no value: a list gives values to '?' only."
        raise QueryError(message, pinot_code=VALIDATION, hint=_HINT)
    if len(slots) != len(given):
        message = f"The statement has {counted(len(slots), 'parameter')} '?', and {counted(len(given), 'value')} came."
        raise QueryError(message, pinot_code=VALIDATION)
    return tuple(value_of(str(number), value) for number, value in enumerate(given, 1))


def _refuse_valueless(slots: Sequence[Slot], given: Mapping[str, Any] | None = None) -> None:
    """QueryError (700) for the first of slots without values; a misspelled virtual column without values is none."""
    for slot in slots:
        if slot.name is None:
            raise QueryError("A parameter '?' has no value.", pinot_code=VALIDATION, hint=_HINT)
        if given is not None or not suggestion(f"${slot.name}", VIRTUAL):
            near = suggestion(slot.name, map(str, given or ()))
            raise QueryError(f"Parameter '{slot.name}' has no value.{near}", pinot_code=VALIDATION, hint=_HINT)


def _places(tokens: Sequence[Token]) -> Iterator[_Place]:
    opened: list[TokenType] = []
    for index, token in enumerate(tokens):
        kind = token.token_type
        before = tokens[index - 1].token_type if index else None
        is_compared = before in _COMPARED
        if kind in _OPENED:
            opened.append(kind)
        elif kind in _CLOSED and opened:
            opened.pop()
        elif kind is TokenType.PLACEHOLDER:
            yield _Place(index, index + 1, Slot(None, is_compared))
        elif kind is TokenType.QDCOLON:  # `?::INT`
            yield _Place(index, index + 1, Slot(None, False), TokenType.DCOLON)
        elif kind is TokenType.VAR and token.text.startswith("$") and token.text[1:]:
            if token.text.lower() not in _VIRTUAL:
                yield _Place(index, index + 1, Slot(token.text[1:], is_compared))
        elif kind is TokenType.COLON and _is_named(tokens, index, bool(opened)):
            yield _Place(index, index + 2, Slot(tokens[index + 1].text, is_compared))


def _is_named(tokens: Sequence[Token], index: int, is_inside: bool) -> bool:
    """Whether a colon begins a parameter: a word follows at once, and the colon divides no operands (`a:b`, `a[1:b]`).

    `is_inside`: it stands in brackets or braces.
    """
    if index + 1 >= len(tokens):
        return False
    before, colon, word = tokens[index - 1] if index else None, tokens[index], tokens[index + 1]
    if word.start != colon.end + 1 or word.token_type in _QUOTED or not word.text.isidentifier():
        return False
    divides = before is not None and before.token_type in _OPERANDS
    return not (divides and before is not None and (is_inside or before.end + 1 == colon.start))


def _mark(tokens: Sequence[Token], number: int, value: Value, rest: TokenType | None) -> list[Token]:
    """The literal that stands for a parameter, with the place of the parameter's own tokens."""
    first, last = tokens[0], tokens[-1]
    mark = Mark("0")  # the parser sees no value
    mark.slot = number
    kind = (
        TokenType.NUMBER
        if value.kind in {LiteralKind.NUMBER, LiteralKind.NULL, LiteralKind.BOOLEAN, LiteralKind.LIST}
        else TokenType.STRING
    )
    marked = [Token(kind, mark, last.line, last.col, first.start, last.end, [])]
    return marked + ([Token(rest, "::", last.line, last.col, last.start, last.end, [])] if rest is not None else [])


def _put(sql: str, tokens: Sequence[Token], node: exp.Literal, mark: Mark, value: Value) -> None:
    """Puts a value in the place of its mark."""
    parent = node.parent
    if value.kind is not LiteralKind.LIST:
        node.replace(_literal(value, parent))
    elif isinstance(parent, exp.In) and node.arg_key in {"expressions", "field"}:
        items = [_literal(item, parent) for item in value.items]
        written = parent.expressions or [node]  # `IN :x` has the mark in `field`
        parent.set("field", None)
        parent.set("expressions", [new for item in written for new in (items if item is node else [item])])
    else:
        raise misplaced(sql, _token_of(tokens, mark), "is a list, which can stand only in IN (...)")


def _is_empty(node: exp.In) -> bool:
    return not any(node.args.get(key) for key in ("expressions", "query", "field", "unnest"))


def _literal(value: Value, parent: exp.Expr | None) -> exp.Expr:
    """The literal of a value that is no list."""
    match value.kind:
        case LiteralKind.NULL:
            return exp.null()
        case LiteralKind.BOOLEAN:
            return exp.Boolean(this=value.text == "true")
        case LiteralKind.TEXT:
            return text(value.text)
        case LiteralKind.TIMESTAMP | LiteralKind.DOUBLE:
            return cast(text(value.text), value.kind.name)
        case LiteralKind.DECIMAL:
            named = exp.DataType(this=exp.DType.USERDEFINED, kind="BIG_DECIMAL")
            named.meta["written"] = "BIG_DECIMAL"
            return exp.Cast(this=text(value.text), to=named)
    if not value.text.startswith("-"):
        return exp.Literal.number(value.text)
    negative = exp.Neg(this=exp.Literal.number(value.text[1:]))
    return negative if isinstance(parent, _LOOSE) else exp.Paren(this=negative)


def _refuse_ordinal(sql: str, tokens: Sequence[Token], node: exp.Expr, mark: Mark) -> None:
    """QueryError (150) for `ORDER BY :x` and `GROUP BY :x`, where a literal is a column's number or means nothing."""
    child, parent = node, node.parent
    while isinstance(parent, exp.Paren):
        child, parent = parent, parent.parent
    is_key = isinstance(parent, exp.Ordered) or (isinstance(parent, exp.Group) and child.arg_key == "expressions")
    if is_key or (isinstance(parent, exp.Window) and child.arg_key == "partition_by"):
        raise misplaced(sql, _token_of(tokens, mark), "cannot stand for a column in ORDER BY, GROUP BY or PARTITION BY")


def _token_of(tokens: Sequence[Token], mark: Mark) -> Token:
    return next(token for token in tokens if isinstance(token.text, Mark) and token.text.slot == mark.slot)


def _sizes(values: Sequence[Value]) -> tuple[int, int]:
    """The number of values, and of their characters."""
    flat = [item for value in values for item in (value.items or (value,))]
    return len(flat), sum(len(value.text) for value in flat)
