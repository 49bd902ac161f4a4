"""Limits on the texts and lists that a statement makes, estimated from its text.

DuckDB neither interrupts the making of one value nor counts it as memory. So a statement that may make too long a value
is refused before it runs. Lengths that depend on the rows are checked while it runs.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlglot import exp

from hybrid.errors import VALIDATION, QueryError
from hybrid.schema.dialect import canonical
from hybrid.sql.allowed import word_set
from hybrid.sql.calls import call, cast, literal_number, literal_text, number, text
from hybrid.sql.growing_values import check_windows, guard_joined, is_joining
from hybrid.sql.nodes import all_nodes, nodes_of
from hybrid.sql.referents import referents
from hybrid.sql.texts import LONGEST
from hybrid.sql.wholes import once

# The prefix of all our run-time errors: see query.error_mapping.
TOO_LONG = "A text is too long: "
# The assumed characters of a column's value, and elements of a list of unknown length.
COLUMN, ITEMS = 512, 10
# Characters of one value, and of all values for one row. A vector has 2,048 rows, each of which may hold such values.
VALUE_MAX, STATEMENT_MAX = 256 * 1024, 1024**2
# Nodes that a statement may have after rewriting.
NODES_MAX = 200_000
# The most bytes of a text in a function whose cost grows with the product of its texts' lengths.
QUADRATIC_MAX, DAMERAU_MAX = 1_000, 250
# The most bytes of a value made of a column's real values, and of a value that a recursive CTE makes longer.
REPLACED_MAX, RECURSIVE_MAX = 16 * 1024**2, 100_000
_GAIN = 8
_LONG_TYPES = (exp.DType.ARRAY, exp.DType.LIST, exp.DType.JSON, exp.DType.BLOB, exp.DType.VARBINARY, exp.DType.STRUCT)
_NUMBER = 32

_QUADRATIC = word_set("levenshtein editdist3 damerau_levenshtein jaccard jaro_similarity jaro_winkler_similarity")
_NUMBERS = word_set(
    """
    length len charlength characterlength strlen octetlength bitlength levenshtein dameraulevenshtein editdist3 jaccard
    jarosimilarity jarowinklersimilarity hamming hammingdistance mismatches strpos strrpos instr position contains
    startswith endswith prefix suffix regexplike regexpmatches regexpfullmatch ascii ord unicode codepoint hash md5 sha
    sha1 sha256 count countif sum avg arraylength cardinality jsonarraylength jsonvalid listcontains arraycontains
    listposition listsum listavg arraysum arrayaverage distinctcount approxcountdistinct
    """
)
_SHORTENING = word_set(
    "left right leftsubstr rightsubstr leftgrapheme rightgrapheme substr substring substringgrapheme"
)
_COLLECTING = word_set("stringagg listagg groupconcat list arrayagg jsongrouparray jsongroupobject histogram")
_MAPPING = word_set("listtransform listapply arraytransform")
_SPLITTING = word_set("split stringsplit strsplit stringtoarray stringsplitregex strsplitregex regexpsplittoarray")
_JOINING = word_set("arraytostring liststringagg")
_WIDER = {
    "hex": 2, "tohex": 2, "bytestohex": 2, "bin": 8, "tobinary": 8, "tobase64": 2, "base64": 2, "encodeurl": 3,
    "urlencode": 3, "tojson": 2, "jsonquote": 2, "json": 2, "regexpescape": 2, "jsonarray": 2, "jsonobject": 2,
    "upper": 2, "lower": 2, "ucase": 2, "lcase": 2, "normalize": 3, "nfcnormalize": 3,
}  # fmt: skip
_MAKERS = (
    word_set("replace regexpreplace repeat lpad rpad concat concatws format printf jsonpretty listconcat listcat")
    | word_set("arrayconcat arraycat listappend arrayappend listprepend arrayprepend listaggr listaggregate listzip")
    | word_set("flatten listvalue listpack arrayvalue row structpack map mapconcat jsonmergepatch")
    | _COLLECTING | _MAPPING | _SPLITTING | _JOINING | frozenset(_WIDER)
)  # fmt: skip
_MAKER_NODES = (exp.DPipe, exp.GroupConcat, exp.Comprehension, exp.Array, exp.Struct, exp.Tuple)
# How often a function's rewritten form repeats an argument.
_COPIES = {"lpad": 2, "rpad": 2, "repeat": 3, "split": 6, "splitpart": 7, "strrpos": 3, "hammingdistance": 2,
           "div": 2, "divide": 3,
           "rounddecimal": 2, "minmaxrange": 2, "minmaxrangemv": 2, "avgmv": 2, "substr": 8,
           "jsonextractscalar": 2, "jsonpathstring": 2, "jsonpathlong": 2, "jsonpathdouble": 2}  # fmt: skip


class Size(NamedTuple):
    """The size of a value: its number of elements (1 for a text), and the characters of each."""

    items: float
    item: float

    @property
    def total(self) -> float:
        """The characters of the whole value."""
        return self.items * self.item


def check_sizes(tree: exp.Query) -> None:
    """QueryError 700 for a statement, before rewriting, that makes too long a value or itself grows too long."""
    makers = [node for node in all_nodes(tree) if _is_maker(node) or _is_copier(node)]
    if not makers:
        return
    check_windows(tree)
    _check_nodes(tree)
    sizes, total = _Sizes(tree), 0.0
    for node in filter(_is_maker, makers):
        size = sizes.of(node).total
        inside = _is_maker(node.parent) or _is_written(node) or node.find_ancestor(exp.Lambda, exp.Comprehension)
        total += 0 if inside else size
    if total > STATEMENT_MAX:
        raise QueryError(
            f"The statement makes texts and lists of {STATEMENT_MAX:,} characters or more for one row.",
            pinot_code=VALIDATION,
            hint="Make fewer or shorter ones: SUBSTR bounds a text.",
        )


def guard_calls(tree: exp.Query) -> None:
    """Adds run-time checks of the columns' real values to a rewritten statement."""
    nodes = nodes_of(tree, exp.Anonymous, exp.DPipe)
    for node in nodes:
        if not isinstance(node, exp.Anonymous):
            continue
        name = node.name.lower()
        if name in _QUADRATIC and len(node.expressions) >= 2:
            most = DAMERAU_MAX if name == "damerau_levenshtein" else QUADRATIC_MAX  # eight times as slow
            reason = f"{name} takes texts of at most {most:,} bytes; SUBSTR makes them shorter"
            for argument in list(node.expressions):
                _bound(argument, most, reason)
        elif name in {"replace", "regexp_replace"} and len(node.expressions) >= 3:
            _guard_replacing(node, name)
    if any(map(is_joining, nodes)):  # searched again, because nodes may have been replaced
        guard_joined(tree, REPLACED_MAX, TOO_LONG)
    for clause in nodes_of(tree, exp.With):
        if clause.args.get("recursive"):
            _guard_recursion(clause)


def _is_maker(node: exp.Expr | None) -> bool:
    if isinstance(node, exp.Anonymous):
        return canonical(node.name) in _MAKERS
    return isinstance(node, _MAKER_NODES)


def _is_copier(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and (canonical(node.name) in _COPIES or node.name.lower() == "histogram")


def _is_written(node: exp.Expr) -> bool:
    """Whether a node is a list of literals."""
    return isinstance(node, exp.Array | exp.Tuple) and all(isinstance(item, exp.Literal) for item in node.expressions)


def _check_nodes(tree: exp.Expr) -> None:
    """QueryError 700 for a statement with too many nodes once arguments are repeated."""
    copied: list[tuple[exp.Expr, int]] = [(tree, 1)]
    written = 0
    while copied:
        node, times = copied.pop()
        written += times
        if written > NODES_MAX:
            raise QueryError(
                "Functions that repeat their arguments (LPAD, REPEAT, SPLITPART and others) are nested too deeply.",
                pinot_code=VALIDATION,
                hint="Compute the inner ones in a subquery.",
            )
        name = canonical(node.name) if isinstance(node, exp.Anonymous) else ""
        factor = _COPIES.get(name, 1)
        if name == "histogram" and len(node.expressions) == 4:
            factor = 2 * int(min(literal_number(node.expressions[3]) or 1, 1000))
        copied += [(child, times * factor) for child in node.iter_expressions()]


class _Sizes:
    """The sizes of a tree's values."""

    def __init__(self, tree: exp.Query) -> None:
        literals = (len(node.name) for node in nodes_of(tree, exp.Literal) if node.is_string)
        self._column = Size(1, float(max(COLUMN, *literals, 0)))
        self._known: dict[int, Size] = {}
        self._busy: set[int] = set()
        self._bound: dict[str, list[Size]] = {}

    def of(self, node: exp.Expr) -> Size:
        """The size of a value. QueryError 700 when it may exceed the limit of a value."""
        cached = self._known.get(id(node))
        if cached is not None:
            return cached
        if id(node) in self._busy:
            return self._column
        self._busy.add(id(node))
        size = self._computed(node)
        self._busy.discard(id(node))
        if size.total > VALUE_MAX and _is_maker(node) and not _is_written(node):
            raise _too_long(node)
        self._known[id(node)] = size
        return size

    def _computed(self, node: exp.Expr) -> Size:
        if isinstance(node, exp.Literal):
            return Size(1, float(len(node.name)))
        if isinstance(node, exp.Column | exp.Identifier):
            return self._of_name(node)
        if isinstance(node, exp.Anonymous | exp.GroupConcat | exp.Substring):
            return self._called(*_call_of(node))
        if isinstance(node, exp.Array) and node.expressions:
            return Size(len(node.expressions), self._sum(node.expressions).total / len(node.expressions))
        if isinstance(node, exp.Comprehension):
            return self._mapped(node.args["iterator"], node.this, [node.expression])
        choices = _choices(node)
        if choices is not None:
            return self._longest(choices)
        if isinstance(node, exp.Cast | exp.TryCast):
            return self._cast(node)
        if isinstance(
            node, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.IntDiv | exp.Mod | exp.Predicate | exp.Connector
        ):
            for child in node.iter_expressions():
                self.of(child)
            return Size(1, _NUMBER)
        return self._sum(list(node.iter_expressions()))

    def _cast(self, node: exp.Expr) -> Size:
        """The size of a CAST: unchanged for text, lists and other long types; any other type is short."""
        inner, kind = self.of(node.this), node.args["to"]
        long = kind.this in exp.DataType.TEXT_TYPES or kind.this in _LONG_TYPES or kind.expressions
        return inner if long else Size(1, _NUMBER)

    def _called(self, name: str, arguments: list[exp.Expr]) -> Size:
        if name in _MAPPING and len(arguments) == 2 and isinstance(arguments[1], exp.Lambda):
            return self._mapped(arguments[0], arguments[1].this, arguments[1].expressions)
        sizes = [self.of(argument) for argument in arguments]
        if name in _NUMBERS or not sizes:
            return Size(1, _NUMBER)
        first, last = sizes[0].total, sizes[-1].total
        if name in {"replace", "regexpreplace"} and len(sizes) >= 3:
            return Size(1, self._replaced(name, first, arguments[1], sizes[2].total))
        characters = _text_of_call(name, arguments, [size.total for size in sizes])
        if characters is not None:
            return Size(1, characters)
        if name in _SPLITTING:
            return Size(max(first, 1), 1)
        if name in _JOINING or (name in {"listaggr", "listaggregate"} and len(sizes) > 1):
            return Size(1, first + max(sizes[0].items, ITEMS if sizes[0].items == 1 else 1) * last)
        rest = sum(size.total for size in sizes)
        return Size(ITEMS, rest) if name in _COLLECTING else Size(1, rest * _WIDER.get(name, 1))

    def _replaced(self, name: str, subject: float, old: exp.Expr, new: float) -> float:
        if name == "regexpreplace":  # the pattern may match the empty text at each position
            return (subject + 1) * (new + 1)
        searched = literal_text(old.unnest())
        return subject * max(1.0, new / max(1, len(searched or "")))

    def _mapped(self, source: exp.Expr, body: exp.Expr, names: list[exp.Expr]) -> Size:
        """The size of a list whose elements are mapped by a lambda."""
        listed = self.of(source)
        bound = [name.name.lower() for name in names]
        for name in bound:
            self._bound.setdefault(name, []).append(Size(1, max(listed.item, 1)))
        made = self.of(body)
        for name in bound:
            self._bound[name].pop()
        return Size(max(listed.items, ITEMS if listed.items == 1 else 1), made.total)

    def _sum(self, parts: list[exp.Expr]) -> Size:
        return Size(1, max(sum(self.of(part).total for part in parts), _NUMBER))

    def _longest(self, parts: list[exp.Expr]) -> Size:
        return max((self.of(part) for part in parts), key=lambda size: size.total, default=self._column)

    def _of_name(self, node: exp.Expr) -> Size:
        name = node.name.lower()
        if self._bound.get(name):
            return self._bound[name][-1]
        meanings = list(referents(node)) if isinstance(node, exp.Column) else []
        # Without a meaning it is a column of a table, or a column that a recursive CTE reads from itself.
        return self._longest([part for part in meanings if id(part) not in self._busy])


def _call_of(node: exp.Anonymous | exp.GroupConcat | exp.Substring) -> tuple[str, list[exp.Expr]]:
    """The name and the arguments of a call, also where sqlglot has a class of its own for it."""
    if isinstance(node, exp.Anonymous):
        return canonical(node.name), node.expressions
    if isinstance(node, exp.GroupConcat):
        return "groupconcat", list(node.iter_expressions())
    return "left", [part for part in (node.this, node.args.get("length")) if part is not None]


def _choices(node: exp.Expr) -> list[exp.Expr] | None:
    """The parts of a node whose value is that of one of them; None for any other node."""
    if isinstance(node, exp.Select):
        return node.expressions
    if isinstance(node, exp.SetOperation):
        return [node.this, node.expression]
    if isinstance(node, exp.Case | exp.If | exp.Coalesce):
        return list(node.iter_expressions())
    if isinstance(node, exp.Alias | exp.Paren | exp.Subquery | exp.Window | exp.Filter | exp.Bracket | exp.Unnest):
        return [node.this] if node.this else node.expressions
    return None


def _text_of_call(name: str, arguments: list[exp.Expr], totals: list[float]) -> float | None:
    """The characters of the text that a function makes of arguments with `totals`; None for any other function."""
    first, last = totals[0], totals[-1]
    rest = sum(totals)
    if name == "repeat":
        value = rest - last
        times = literal_number(arguments[-1])
        return value + LONGEST if times is None else min(value * max(times, 0), value + LONGEST)
    if name in {"lpad", "rpad"} and len(arguments) > 1:
        width = literal_number(arguments[1])
        return max(first, LONGEST if width is None else min(width, LONGEST))
    if name == "concatws" or (name == "concat" and len(arguments) == 3):
        return rest + (first if name == "concatws" else last) * len(totals)
    if name in {"format", "printf"}:
        return first * 250 + (first / 2 + 1) * max(totals[1:], default=0)
    if name == "jsonpretty":
        return first * max(1, first / 4)
    if name in _SHORTENING:
        counted = len(arguments) == 3 or (len(arguments) == 2 and not name.startswith("substr"))
        most = literal_number(arguments[-1]) if counted else None
        return first if most is None or most < 0 else min(first, most)
    return None


def _too_long(node: exp.Expr) -> QueryError:
    other = "||" if isinstance(node, exp.DPipe) else "A list"
    name = node.name.upper() if isinstance(node, exp.Anonymous) else other
    return QueryError(
        f"{name} may make a value of more than {VALUE_MAX:,} characters here (a column counts as {COLUMN}).",
        pinot_code=VALIDATION,
        hint="Give it shorter texts: SUBSTR(text, 0, n) bounds one.",
    )


def _bound(argument: exp.Expr, most: int, reason: str) -> None:
    """Wraps an argument in a check of its bytes, unless it is surely short."""
    written = literal_text(argument)
    if isinstance(argument, exp.Null) or (written is not None and len(written.encode()) <= most):
        return

    def checked(value: exp.Expr) -> exp.Expr:
        # The cast leaves values of a wrong type for the function itself to refuse.
        length = call("strlen", cast(value.copy(), "VARCHAR"))
        return _checked(exp.GT(this=length, expression=number(most)), value.copy(), reason)

    argument.replace(once(argument.copy(), checked))


def _checked(wrong: exp.Expr, value: exp.Expr, reason: str) -> exp.Expr:
    return exp.Case(ifs=[exp.If(this=wrong, true=call("error", text(f"{TOO_LONG}{reason}.")))], default=value)


def _guard_replacing(node: exp.Anonymous, name: str) -> None:
    """Limits the text in which parts are replaced by longer ones."""
    subject, old, new = node.expressions[:3]
    written = literal_text(new)
    if literal_text(subject) is not None:
        return
    if written is None:
        _bound(new, LONGEST * 2, f"{name} puts texts of at most {LONGEST * 2:,} bytes in")
    gain = len(written.encode()) if written is not None else COLUMN
    if name == "replace":
        gain //= max(1, len((literal_text(old) or "").encode()))
    if gain >= _GAIN:
        most = REPLACED_MAX // gain
        _bound(subject, most, f"{name} by a longer text takes at most {most:,} bytes here")


def _guard_recursion(clause: exp.With) -> None:
    """Limits the values that a recursive CTE makes longer in each step."""
    reason = f"a recursive WITH makes values of at most {RECURSIVE_MAX:,} bytes longer"
    columns = {
        id(column): column for node in all_nodes(clause) if _is_maker(node) for column in nodes_of(node, exp.Column)
    }
    for column in columns.values():
        wrong = exp.GT(this=call("strlen", cast(column.copy(), "VARCHAR")), expression=number(RECURSIVE_MAX))
        column.replace(exp.Paren(this=_checked(wrong, column.copy(), reason)))
