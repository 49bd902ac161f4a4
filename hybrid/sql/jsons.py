"""Pinot's functions of JSON texts in DuckDB's SQL."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from sqlglot import exp

from hybrid.errors import VALIDATION, QueryError
from hybrid.sql.calls import call, cast, literal_number, literal_text, text
from hybrid.sql.casts import PINOT_TYPES, pinot_type
from hybrid.sql.wholes import try_whole

Arguments = Sequence[exp.Expr]

# DuckDB has no names in brackets: `$['a']` becomes `$."a"`.
_BRACKETS = re.compile(r"\['([^'\]]+)'\]")


def _json_extract_scalar(arguments: Arguments) -> exp.Expr:
    """JSON_EXTRACT_SCALAR(column, path, type [, default])."""
    kind = pinot_type(literal_text(arguments[2]))
    if kind is None:
        message = f"JSON_EXTRACT_SCALAR: the type must be one of {', '.join(PINOT_TYPES)}."
        raise QueryError(message, pinot_code=VALIDATION)
    return _value(arguments[:2], kind, arguments[3:])


def _path(kind: str) -> Callable[[Arguments], exp.Expr]:
    """JSONPATHLONG(column, path [, default]) and the like."""
    return lambda arguments: _value(arguments[:2], kind, arguments[2:])


def _value(place: Arguments, kind: str, default: Arguments) -> exp.Expr:
    """The value at a path; the default, or null, where the text is no JSON or the path is missing."""
    column, path = place
    written = literal_text(path)
    if written is not None:
        path = text(_BRACKETS.sub(lambda match: f'."{match.group(1)}"', written))
    valid = call("json_valid", cast(column.copy(), "VARCHAR"))
    value: exp.Expr = exp.Case(ifs=[exp.If(this=valid, true=call("json_extract_string", column, path))])
    if kind in {"INTEGER", "BIGINT"}:
        value = try_whole(value, kind)
    elif kind != "VARCHAR":
        value = exp.TryCast(this=value, to=exp.DataType.build(kind, dialect="duckdb"))
    return call("coalesce", value, _default(default[0], kind)) if default else value


def _default(value: exp.Expr, kind: str) -> exp.Expr:
    """The default, cast to the type of the value."""
    cut = (
        kind in {"INTEGER", "BIGINT"}
        and literal_text(value.unnest()) is None
        and literal_number(value.unnest()) is not None
    )
    return cast(call("trunc", value) if cut else value, kind) if kind != "VARCHAR" else value


# Canonical name -> (numbers of arguments, rule).
RULES: dict[str, tuple[tuple[int, ...], Callable[[Arguments], exp.Expr]]] = {
    "jsonextractscalar": ((3, 4), _json_extract_scalar),
    "jsonpathstring": ((2, 3), _path("VARCHAR")),
    "jsonpathlong": ((2, 3), _path("BIGINT")),
    "jsonpathdouble": ((2, 3), _path("DOUBLE")),
    "jsonformat": ((1,), lambda arguments: cast(arguments[0], "VARCHAR")),
    "tojsonmapstr": ((1,), lambda arguments: cast(arguments[0], "VARCHAR")),
}
