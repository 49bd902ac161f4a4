"""Pinot's functions of texts and bytes in DuckDB's SQL. Pinot counts positions from 0, and its patterns ignore case."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from sqlglot import exp

from hybrid.errors import VALIDATION, QueryError
from hybrid.expression.replacements import replacement_parts
from hybrid.schema import characters
from hybrid.sql.calls import SAME_AS, call, cast, literal_number, literal_text, number, text
from hybrid.sql.nodes import nodes_of
from hybrid.sql.wholes import once

Arguments = Sequence[exp.Expr]
ScalarRule = Callable[[Arguments], exp.Expr]

_IGNORE_CASE = "i"
_PART = "_hy_part"
# The longest text (characters) that one padding or repetition makes: DuckDB neither interrupts nor bounds one value.
LONGEST = 10_000
_PLAIN_BACKSLASH = re.compile(r"\\(?![_%])")
_WIDTH = re.compile(r"[0-9]{4}|\*|\{[^}]*\{")


def ignore_case(tree: exp.Query, *, rows: bool = False) -> None:
    """Makes every LIKE ignore case, and a backslash escape `_` and `%` in its pattern.

    Spark's LIKE (`rows`) has this escape already.
    """
    for node in nodes_of(tree, exp.Like, exp.ILike):
        ignoring = exp.ILike(**{name: value for name, value in node.args.items()})
        pattern = literal_text(node.expression)
        escapes = pattern is not None and "\\" in pattern and not isinstance(node.parent, exp.Escape) and not rows
        if pattern is not None and escapes:
            ignoring.set("expression", text(like_pattern(pattern)))
            node.replace(exp.Escape(this=ignoring, expression=text("\\")))
        elif isinstance(node, exp.Like):
            node.replace(ignoring)


def name_trimmed(tree: exp.Query) -> None:
    """Adds the characters to remove to each TRIM without any."""
    for node in nodes_of(tree, exp.Trim):
        if not node.expression:
            node.set("expression", text(characters.TRIMMED))


def like_pattern(pattern: str) -> str:
    """A LIKE pattern of Pinot for the escape character backslash. In Pinot it escapes only `_` and `%`."""
    return _PLAIN_BACKSLASH.sub(r"\\\\", pattern)


def renamed_function(name: str) -> ScalarRule:
    """A rule that renames a function and keeps its arguments."""
    return lambda arguments: call(name, *arguments)


def _whole(name: str) -> ScalarRule:
    """A rule that renames a function and casts its result to INT, as in Pinot."""
    return lambda arguments: cast(call(name, *arguments), "INTEGER")


def _regexp_like(arguments: Arguments) -> exp.Expr:
    """REGEXP_LIKE(text, pattern [, 'c' or 'i'])."""
    flags = arguments[2] if len(arguments) > 2 else text(_IGNORE_CASE)
    return call("regexp_matches", cast(arguments[0], "VARCHAR"), arguments[1], flags)


def _regexp_replace(arguments: Arguments) -> exp.Expr:
    """REGEXPREPLACE(text, pattern, replacement): replaces every match."""
    value, pattern, new = arguments
    template = literal_text(new)
    if template is not None:
        new = text("".join(_of_duckdb(part) for part in replacement_parts(template)))
    return call("regexp_replace", value, pattern, new, text("g"))


def _of_duckdb(part: str | int | tuple[str]) -> str:
    if isinstance(part, tuple):
        message = f"REGEXPREPLACE: groups are put in by number in SQL: write '$1' for '${{{part[0]}}}'."
        raise QueryError(message, pinot_code=VALIDATION)
    return f"\\{part}" if isinstance(part, int) else part.replace("\\", "\\\\")


def _substr(arguments: Arguments) -> exp.Expr:
    """SUBSTR(text, begin [, end]): counts from 0 and ends before `end`, as in Java; -1 is the end of the text.

    Other negative positions count from the end.
    """
    value, position = arguments[0], arguments[1]
    start = literal_number(position.unnest())
    if len(arguments) == 2 or literal_number(arguments[2].unnest()) == -1:
        if start is not None:
            return call("substring", value, position if start < 0 else _plus(position, 1))
        is_negative = exp.LT(this=exp.Paren(this=position), expression=number(0))
        return call("substring", value, call("if", is_negative, position.copy(), _plus(position, 1)))
    last = literal_number(arguments[2].unnest())
    if start is not None and last is not None and min(start, last) >= 0:
        return call("substring", value, number(int(start) + 1), number(max(0, int(last) - int(start))))
    begin, end = _from_begin(value, position), _from_begin(value, arguments[2], is_end=True)
    length = exp.Paren(this=exp.Sub(this=end, expression=begin))
    return call("substring", value, _plus(begin.copy(), 1), _not_negative(length))


def _from_begin(value: exp.Expr, place: exp.Expr, *, is_end: bool = False) -> exp.Expr:
    """A position that may be negative, converted to one from the start of the text."""
    constant = literal_number(place.unnest())
    if constant is not None and constant >= 0:
        return exp.Paren(this=place)
    length = call("length", value.copy())
    moved = call("greatest", exp.Add(this=length, expression=exp.Paren(this=place.copy())), number(0))
    if constant is not None:
        return moved
    ifs = [exp.If(this=exp.LT(this=exp.Paren(this=place.copy()), expression=number(0)), true=moved)]
    if is_end:
        ifs.insert(0, exp.If(this=exp.EQ(this=exp.Paren(this=place.copy()), expression=number(-1)), true=length.copy()))
    return exp.Paren(this=exp.Case(ifs=ifs, default=place))


def _not_negative(value: exp.Expr) -> exp.Expr:
    """The number, or 0 if it is negative; a null stays a null."""
    if literal_number(value.unnest()) is not None:
        return value if (literal_number(value.unnest()) or 0) >= 0 else number(0)
    below = exp.LT(this=exp.Paren(this=value), expression=number(0))
    return exp.Case(ifs=[exp.If(this=below, true=number(0))], default=value.copy())


def _end_of(name: str) -> ScalarRule:
    """LEFTSUBSTR and RIGHTSUBSTR: empty for a negative length, as in Pinot."""
    return lambda arguments: call(name, arguments[0], _not_negative(arguments[1]))


def _reverse(arguments: Arguments) -> exp.Expr:
    """REVERSE by code points, as in Java; DuckDB's own function keeps letters and their accents together."""
    value = cast(arguments[0], "VARCHAR")
    reversed_text = call(
        "array_to_string", call("list_reverse", call("regexp_extract_all", value, text("(?s)."))), text("")
    )
    reversed_text.meta[SAME_AS] = _plain_reverse
    return reversed_text


def _plain_reverse(node: exp.Expr) -> exp.Expr:
    return call("reverse", node.expressions[0].expressions[0].expressions[0].copy())


def _concat(arguments: Arguments) -> exp.Expr:
    """CONCAT(a, b [, separator]): null if an argument is null, as in Pinot."""
    first, second, *separator = arguments
    joined: exp.Expr = first
    for part in (*separator, second):
        joined = exp.DPipe(this=joined, expression=exp.Paren(this=part))
    return exp.Paren(this=joined)


def _split_part(arguments: Arguments) -> exp.Expr:
    """SPLITPART(text, separator, place): counts from 0, or backwards if negative; a missing part is the text `null`."""
    value, separator, place = arguments
    constant = literal_number(place.unnest())
    if constant is not None:
        from_one = number(int(constant) + 1) if constant >= 0 else place
    else:
        from_one = call("if", exp.LT(this=exp.Paren(this=place), expression=number(0)), place.copy(), _plus(place, 1))
    part = call("coalesce", call("list_extract", _split([value, separator]), from_one), text("null"))
    is_null = exp.Is(this=exp.Paren(this=value.copy()), expression=exp.Null())
    return exp.Case(ifs=[exp.If(this=exp.Not(this=is_null), true=part)])


def _split(arguments: Arguments) -> exp.Expr:
    """SPLIT(text, separator): adjacent separators count as one, and a leading one is ignored, as in Pinot."""
    value, separator = arguments
    if literal_text(separator.unnest()) == "":
        raise QueryError("SPLIT, SPLITPART: the separator is empty.", pinot_code=VALIDATION)
    parts = call("string_split", value, separator)
    filled = exp.NEQ(this=exp.column(_PART), expression=text(""))
    parts = call("list_filter", parts, exp.Lambda(this=filled, expressions=[exp.to_identifier(_PART)]))
    twice = exp.Paren(this=exp.DPipe(this=separator.copy(), expression=separator.copy()))
    single = exp.Not(this=call("ends_with", value.copy(), twice))
    ends = exp.And(this=call("ends_with", value.copy(), separator.copy()), expression=single)
    more = exp.NEQ(this=exp.Paren(this=value.copy()), expression=exp.Paren(this=separator.copy()))
    closed = exp.If(this=exp.And(this=ends, expression=more), true=call("list_append", parts, text("")))
    return exp.Case(ifs=[closed], default=parts.copy())


def _str_pos(arguments: Arguments) -> exp.Expr:
    return cast(exp.Paren(this=_plus(call("strpos", *arguments), -1)), "INTEGER")


def _last_str_pos(arguments: Arguments) -> exp.Expr:
    """The position of the last occurrence, from 0; -1 when there is none."""
    value, part = arguments
    backwards = call("strpos", call("reverse", value.copy()), call("reverse", part.copy()))
    lengths = exp.Sub(this=call("length", value.copy()), expression=call("length", part.copy()))
    place = exp.Add(this=exp.Sub(this=lengths, expression=backwards), expression=number(1))
    holds = call("contains", value, part)
    absent = exp.Not(this=holds.copy())  # both conditions are null for a null
    position = exp.Case(ifs=[exp.If(this=holds, true=place), exp.If(this=absent, true=number(-1))])
    return cast(position, "INTEGER")


def _plus(value: exp.Expr, step: int) -> exp.Expr:
    """The sum of a value and a constant, in 64 bits."""
    constant = literal_number(value.unnest())
    if constant is not None:
        return number(int(constant) + step)
    return exp.Add(this=exp.Paren(this=cast(value, "BIGINT")), expression=number(step))


def _pad(name: str) -> ScalarRule:
    """LPAD and RPAD, which never cut a text."""

    def rule(arguments: Arguments) -> exp.Expr:
        value, width, filling = arguments
        bounded = cast(call("least", width, number(LONGEST)), "INTEGER")
        wide = call("greatest", bounded, cast(call("length", value.copy()), "INTEGER"))
        return call(name, value, wide, filling)

    return rule


def _repeat(arguments: Arguments) -> exp.Expr:
    """REPEAT(text, times) and REPEAT(text, separator, times)."""
    value, times = arguments[0], arguments[-1]
    if len(arguments) == 2:
        return _repeated(value, times)
    separator = arguments[1]
    joined = _repeated(exp.Paren(this=exp.DPipe(this=value, expression=separator)), times)
    return call("left", joined, exp.Neg(this=call("length", separator.copy())))


def _repeated(value: exp.Expr, times: exp.Expr) -> exp.Expr:
    length = call("greatest", call("length", value.copy()), number(1))
    most = exp.Add(this=exp.IntDiv(this=number(LONGEST), expression=length), expression=number(1))
    return call("repeat", value, call("least", times, most))


def _formatted(name: str) -> ScalarRule:
    """FORMAT and PRINTF, whose pattern must be a constant without large widths."""

    def rule(arguments: Arguments) -> exp.Expr:
        pattern = literal_text(arguments[0])
        if pattern is None or _WIDTH.search(pattern):
            message = f"{name.upper()}: the pattern must be a quoted constant, its widths plain and below 1000."
            raise QueryError(message, pinot_code=VALIDATION)
        return call(name, *arguments)

    return rule


def _hamming(arguments: Arguments) -> exp.Expr:
    """HAMMINGDISTANCE(a, b): -1 for texts of different lengths."""
    lengths = [call("length", argument.copy()) for argument in arguments]
    fits = exp.EQ(this=lengths[0], expression=lengths[1])
    distance = exp.Case(ifs=[exp.If(this=fits, true=call("hamming", *arguments))], default=number(-1))
    return cast(distance, "INTEGER")


def _encode_url(arguments: Arguments) -> exp.Expr:
    """ENCODEURL as Java encodes forms: a space becomes a plus."""
    encoded: exp.Expr = call("url_encode", arguments[0])
    for ours, java in (("%20", "+"), ("~", "%7E"), ("%2A", "*")):
        encoded = call("replace", encoded, text(ours), text(java))
    return encoded


def _decode_url(arguments: Arguments) -> exp.Expr:
    return call("url_decode", call("replace", arguments[0], text("+"), text(" ")))


def _from_base64(arguments: Arguments) -> exp.Expr:
    """FROMBASE64 as Java decodes: the padding may be missing."""

    def padded(value: exp.Expr) -> exp.Expr:
        quads = exp.IntDiv(this=exp.Paren(this=_plus(call("length", value.copy()), 3)), expression=number(4))
        width = exp.Mul(this=exp.Paren(this=quads), expression=number(4))
        return call("from_base64", call("rpad", value.copy(), cast(exp.Paren(this=width), "INTEGER"), text("=")))

    return once(arguments[0], padded)


_ANY = tuple(range(1, 100))

# Canonical name -> (numbers of arguments, rule). With another number of arguments DuckDB's own function applies.
RULES: dict[str, tuple[tuple[int, ...], ScalarRule]] = {
    "regexplike": ((2, 3), _regexp_like),
    "regexpreplace": ((3,), _regexp_replace),
    "regexpextract": ((2, 3), renamed_function("regexp_extract")),
    "ltrim": ((1,), lambda arguments: call("ltrim", arguments[0], text(characters.SPACES))),
    "rtrim": ((1,), lambda arguments: call("rtrim", arguments[0], text(characters.SPACES))),
    "reverse": ((1,), _reverse),
    "length": ((1,), _whole("length")),
    "substr": ((2, 3), _substr),
    "leftsubstr": ((2,), _end_of("left")),
    "rightsubstr": ((2,), _end_of("right")),
    "split": ((2,), _split),
    "splitpart": ((3,), _split_part),
    "strpos": ((2,), _str_pos),
    "strrpos": ((2,), _last_str_pos),
    "concat": ((2, 3), _concat),
    "startswith": ((2,), renamed_function("starts_with")),
    "endswith": ((2,), renamed_function("ends_with")),
    "remove": ((2,), lambda arguments: call("replace", *arguments, text(""))),
    "lpad": ((3,), _pad("lpad")),
    "rpad": ((3,), _pad("rpad")),
    "repeat": ((2, 3), _repeat),
    "codepoint": ((1,), _whole("unicode")),
    "hammingdistance": ((2,), _hamming),
    "normalize": ((1,), renamed_function("nfc_normalize")),
    "encodeurl": ((1,), _encode_url),
    "decodeurl": ((1,), _decode_url),
    "tobase64": ((1,), renamed_function("to_base64")),
    "frombase64": ((1,), _from_base64),
    "toutf8": ((1,), renamed_function("encode")),
    "fromutf8": ((1,), renamed_function("decode")),
    "bytestohex": ((1,), lambda arguments: call("lower", call("hex", arguments[0]))),
    "hextobytes": ((1,), renamed_function("unhex")),
    "sha": ((1,), renamed_function("sha1")),
    "format": (_ANY, _formatted("format")),
    "printf": (_ANY, _formatted("printf")),
}
