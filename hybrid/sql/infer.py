"""Infers the Pinot type of an expression, before or after rewriting.

None: the text does not determine the type, and DuckDB knows it only when the statement runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from hybrid.schema.dialect import canonical
from hybrid.schema.types import DataType
from hybrid.sql.calls import ColumnTypes, is_millis, is_temporal, literal_number, literal_text

_TYPE = "data_type"
INT, LONG, FLOAT, DOUBLE, DECIMAL = DataType.INT, DataType.LONG, DataType.FLOAT, DataType.DOUBLE, DataType.BIG_DECIMAL
STRING, TIMESTAMP, BOOLEAN = DataType.STRING, DataType.TIMESTAMP, DataType.BOOLEAN
NUMBERS = (INT, LONG, FLOAT, DOUBLE, DECIMAL)
_CASTS = {
    "INT": INT, "BIGINT": LONG, "SMALLINT": INT, "TINYINT": INT, "FLOAT": FLOAT, "DOUBLE": DOUBLE, "DECIMAL": DECIMAL,
    "TEXT": STRING, "VARCHAR": STRING, "TIMESTAMP": TIMESTAMP, "TIMESTAMPNTZ": TIMESTAMP, "DATETIME": TIMESTAMP,
    "BOOLEAN": BOOLEAN, "BIGDECIMAL": DECIMAL,
}  # fmt: skip
_NAMED = {name.value: name for name in DataType}
_PARTS = """
    year yearofweek yow isoyear quarter month monthofyear week weekofyear day dayofmonth dayofweek isodow dow dayofyear
    doy hour minute second millisecond length strpos strrpos codepoint hammingdistance arraylength
    distinctcount distinctcountbitmap
"""
_LONGS = """
    now ago fromdatetime timeconvert fromtimestamp dateadd timestampadd datediff timestampdiff jsonpathlong count
    percentileest percentilerawest epochus
"""
_DOUBLES = """
    avg sqrt exp ln log log2 log10 power pow stddev variance floor percentile percentiletdigest jsonpathdouble
    rounddecimal sign stddevpop stddevsamp varpop varsamp
"""
_TEXTS = """
    lower upper trim ltrim rtrim substr substring concat concatws replace reverse todatetime strftime jsonpathstring
    jsonformat regexpreplace regexpextract splitpart leftsubstr rightsubstr lpad rpad repeat
"""
_MOMENTS = "totimestamp maketimestampms maketimestamp"
_BY_NAME = {
    **dict.fromkeys(_PARTS.split(), INT),
    **dict.fromkeys(_LONGS.split(), LONG),
    **dict.fromkeys(_DOUBLES.split(), DOUBLE),
    **dict.fromkeys(_TEXTS.split(), STRING),
    **dict.fromkeys(_MOMENTS.split(), TIMESTAMP),
}
# Functions whose value has the type of their first argument.
_FIRST_NAMES = """
    min max abs anyvalue first last argmin argmax lag lead firstvalue lastvalue nullif trunc truncate mode
    firstwithtime lastwithtime
"""
_FIRST = frozenset(_FIRST_NAMES.split())
# Functions that return one of their arguments.
_WIDEST = frozenset(("coalesce", "ifnull", "greatest", "least"))


def set_type(node: exp.Expr, kind: DataType | None) -> None:
    """Notes the type of an expression whose text does not determine it."""
    node.unnest().meta[_TYPE] = kind


def type_of(node: exp.Expr, types: ColumnTypes) -> DataType | None:
    """The type of an expression, or None."""
    node = node.unnest()
    if _TYPE in node.meta:
        noted: DataType | None = node.meta[_TYPE]
        return noted
    if isinstance(node, exp.Column):
        return types.get(node.name.lower())
    if isinstance(node, exp.Literal):
        return STRING if node.is_string else _literal_type(node)
    if isinstance(node, exp.Boolean | exp.Predicate | exp.Not | exp.Connector):
        return BOOLEAN
    if isinstance(node, exp.Neg | exp.Div | exp.Add | exp.Sub | exp.Mul | exp.Mod | exp.IntDiv):
        return _operation_type(node, types)
    if isinstance(node, exp.Cast):
        return _cast_type(node)
    if isinstance(node, exp.Filter | exp.Window | exp.IgnoreNulls):
        return type_of(node.this, types)
    if isinstance(node, exp.Case):
        values = [branch.args["true"] for branch in node.args["ifs"]]
        default = node.args.get("default")
        return _common([*values, *([default] if default is not None else [])], types)
    if isinstance(node, exp.Subquery | exp.Select):
        return _only_result(node, types)
    return _call_type(node, types) if isinstance(node, exp.Anonymous) else None


def is_time(node: exp.Expr, types: ColumnTypes) -> bool:
    """Whether an expression is surely a date or a timestamp, and not epoch milliseconds."""
    return type_of(node, types) is TIMESTAMP or (_TYPE not in node.unnest().meta and is_temporal(node, types))


def is_fraction(node: exp.Expr) -> bool:
    """Whether the node is a number literal with a point or an exponent, which DuckDB may read as a decimal."""
    return isinstance(node, exp.Literal) and not node.is_string and not node.name.isdigit()


def _literal_type(node: exp.Literal) -> DataType | None:
    if literal_number(node) is None:
        return None
    if is_fraction(node):
        return DOUBLE
    return INT if int(node.name) < 2**31 else LONG


def _cast_type(node: exp.Cast) -> DataType | None:
    own = _NAMED.get(str(node.to.args.get("kind") or "").upper())
    return own or _CASTS.get(node.to.this.name if isinstance(node.to.this, exp.DType) else "")


def _operation_type(node: exp.Neg | exp.Binary, types: ColumnTypes) -> DataType | None:
    if isinstance(node, exp.Neg):
        return _number(type_of(node.this, types))
    return DOUBLE if isinstance(node, exp.Div) else _arithmetic(node, types)


def _number(kind: DataType | None) -> DataType | None:
    return kind if kind in NUMBERS else None


def _arithmetic(node: exp.Binary, types: ColumnTypes) -> DataType | None:
    left, right = type_of(node.this, types), type_of(node.expression, types)
    if TIMESTAMP in {left, right}:
        if is_step(node.this) or is_step(node.expression):
            return TIMESTAMP
        left, right = (LONG if kind is TIMESTAMP else kind for kind in (left, right))
    sides = ((node.this, left), (node.expression, right))
    if DECIMAL in {left, right} and any(kind in {FLOAT, DOUBLE} and not _is_decimal(side) for side, kind in sides):
        return DOUBLE
    return wider(left, right)


def _is_decimal(node: exp.Expr) -> bool:
    """Whether the node is a literal that counts as a decimal beside a decimal: `1.5`, but not `1e3`."""
    inner = node.unnest()
    inner = inner.this.unnest() if isinstance(inner, exp.Neg) else inner
    return is_fraction(inner) and "e" not in inner.name.lower()


def is_step(node: exp.Expr) -> bool:
    """Whether an operand is a step of time."""
    inner = node.unnest()
    return isinstance(inner, exp.Interval) or (
        isinstance(inner, exp.Anonymous) and inner.name.lower().startswith("to_")
    )


def wider(left: DataType | None, right: DataType | None) -> DataType | None:
    """The result type of arithmetic on two numbers; None if one is no number."""
    if left not in NUMBERS or right not in NUMBERS:
        return None
    if DECIMAL in {left, right}:
        return DECIMAL
    return DOUBLE if {left, right} & {FLOAT, DOUBLE} else LONG


def _common(values: Sequence[exp.Expr], types: ColumnTypes) -> DataType | None:
    """The type of an expression that returns one of several values; nulls are ignored."""
    kinds = {type_of(value, types) for value in values if not isinstance(value.unnest(), exp.Null)}
    if len(kinds) <= 1:
        return kinds.pop() if kinds else None
    if kinds <= {TIMESTAMP, INT, LONG}:
        return TIMESTAMP if TIMESTAMP in kinds else LONG
    if DECIMAL in kinds and kinds & {FLOAT, DOUBLE}:
        return DOUBLE
    first, *others = kinds
    for kind in others:
        first = wider(first, kind)
    return first


def _only_result(node: exp.Expr, types: ColumnTypes) -> DataType | None:
    """The type of a scalar subquery."""
    select = node.this if isinstance(node, exp.Subquery) else node
    if not isinstance(select, exp.Select) or len(select.expressions) != 1:
        return None
    return type_of(select.expressions[0].unalias(), types)


def _call_type(node: exp.Anonymous, types: ColumnTypes) -> DataType | None:
    name, arguments = canonical(node.name), node.expressions
    if name == "epochms":
        return LONG if is_millis(node) else None
    if name.startswith(("toepoch", "fromepoch")):
        return LONG
    if name == "datetrunc" and len(arguments) >= 2:
        return _truncated_type(arguments, types)
    if name == "jsonextractscalar" and len(arguments) > 2:
        return _NAMED.get((literal_text(arguments[2]) or "").upper())
    if name == "round":
        return LONG if len(arguments) == 2 else _number(type_of(arguments[0], types)) if arguments else None
    if name == "if" and len(arguments) == 3:
        return _common(arguments[1:], types)
    if name in _WIDEST:
        return _common(arguments, types)
    if name in ("sum", "distinctsum") and arguments:
        return DOUBLE if type_of(arguments[0], types) is DECIMAL else None
    if name in _FIRST and arguments:
        return type_of(arguments[0], types)
    return _BY_NAME.get(name)


def _truncated_type(arguments: Sequence[exp.Expr], types: ColumnTypes) -> DataType:
    stays = len(arguments) == 2 and is_time(arguments[1], types) and not isinstance(arguments[1], exp.Column)
    return TIMESTAMP if stays else LONG
