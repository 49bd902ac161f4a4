"""The value of a row expression as its column stores it: its type, the default for a null, the limits of a SQL type."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal

from sqlglot import exp

from hybrid.config.table_config import TableSpec
from hybrid.schema.schema import FieldSpec
from hybrid.schema.sqltypes import parse_sql_type
from hybrid.schema.sqlvalues import sql_column
from hybrid.schema.types import DataType
from hybrid.schema.values import CONVERTERS, EXPECTED
from hybrid.sql.calls import (
    ColumnTypes,
    as_millis,
    as_timestamp,
    call,
    is_millis,
    is_temporal,
    literal_number,
    literal_text,
)
from hybrid.sql.infer import type_of
from hybrid.sql.kinds import DECIMAL, DOUBLE, FLOAT, INT, LONG, kind_of
from hybrid.sql.numeric_types import NumericType, numeric_type
from hybrid.sql.row_functions import PASSING
from hybrid.sql.spark_sql import spark_sql
from hybrid.sql.spark_text import quoted

_TEXTS = (DataType.STRING, DataType.JSON)
_FRACTIONS = (FLOAT, DOUBLE, DECIMAL)


def wrong_constant(node: exp.Expr, field: FieldSpec) -> str | None:
    """A description of the column's values when the expression is a constant that it cannot hold; else None."""
    plain = node.unnest()
    if literal_text(plain) is None and literal_number(plain) is None:
        return None
    column = sql_column(field.sql_type, field.data_type) if field.sql_type else None
    try:
        written = literal_text(plain)
        (column.convert if column else CONVERTERS[field.data_type])(written if written is not None else plain.sql())
    except (ValueError, ArithmeticError, TypeError, KeyError):
        return column.expected if column else EXPECTED[field.data_type]
    return None


def assigned(node: exp.Expr, field: FieldSpec, types: ColumnTypes) -> exp.Expr:
    """A rewritten expression as a value of the column's type: converts between instants and epoch milliseconds."""
    kind = field.data_type
    if kind is DataType.TIMESTAMP and _passes(node, lambda part: _is_number(part, types)):
        return as_timestamp(node, {})
    if kind in {INT, LONG}:
        if _passes(node, lambda part: is_temporal(part, types)):
            return as_millis(node, types) if is_temporal(node, types) else call("epoch_ms", node)
        if _passes(node, lambda part: kind_of(part, types) in _FRACTIONS):
            return call("round", node)  # 114.99999999999999 is 1.15 * 100
    if kind is DataType.BYTES and literal_text(node.unnest()) is not None:
        return call("unhex", node)
    if kind is DataType.STRING and type_of(node, types) is DataType.BYTES:
        return call("lower", call("hex", node))  # as queries show it
    return node


def stored_sql(node: exp.Expr, field: FieldSpec, spec: TableSpec, types: ColumnTypes) -> str:
    """The Spark SQL of an assigned value as it is stored; it raises an error for a null that is not allowed."""
    value = _limited(spark_sql(node, types), node, field, numeric_type(node, types))
    if field.data_type in _TEXTS and _reads_bytes(node, types):
        error = f"column '{field.name}' was given bytes that are not UTF-8: CAST(... AS STRING) makes hexadecimal text"
        value = f"if(NOT is_valid_utf8({value}), raise_error({quoted(error)}), {value})"
    null = _null(field, spec)
    return value if null is None else f"coalesce({value}, {null})"


def _reads_bytes(node: exp.Expr, types: ColumnTypes) -> bool:
    """Whether an expression reads a column of BYTES: Spark takes bytes for text as they are."""
    return any(types.get(column.name.lower()) is DataType.BYTES for column in node.find_all(exp.Column))


def _limited(value: str, node: exp.Expr, field: FieldSpec, given: NumericType | None) -> str:
    """The value cast to the column's type, within the limits of its SQL type."""
    kind = parse_sql_type(field.sql_type, "hybrid.sqlType") if field.sql_type else None
    name, target = kind.name if kind else "", field.data_type.spark_type
    if kind is not None and name == "DECIMAL" and kind.length:
        value = f"CAST({value} AS decimal({kind.length},{kind.scale or 0}))"
    elif name in {"TINYINT", "SMALLINT"}:
        value = f"CAST({value} AS {name.lower()})"
    elif name == "DATE":
        value = f"CAST({value} AS date)"
    elif field.data_type is DataType.TIMESTAMP and not is_temporal(node, {}):
        value = f"CAST({value} AS string)"  # so that a number taken for a text fails, instead of being read as seconds
    typed = f"CAST({value} AS {target})"
    rounds = name == "DECIMAL" and kind is not None and kind.length  # to the type's own places, as in SQL
    if field.data_type is DECIMAL and given is not None and not given.is_whole and not rounds:
        typed = _exact(value, typed, field)
    if kind is not None and name in {"CHAR", "VARCHAR"} and kind.length:
        error = f"a value longer than {kind.length} characters was given to column '{field.name}'"
        return f"if(length({typed}) > {kind.length}, raise_error({quoted(error)}), {typed})"
    return typed


def _exact(value: str, typed: str, field: FieldSpec) -> str:
    """A decimal with all its digits, or an error at run time: a BIG_DECIMAL has 18 decimal places."""
    error = f"a value with more than 18 decimal places was given to column '{field.name}': ROUNDDECIMAL it"
    is_cut = f"coalesce({value} - {typed} <> 0, FALSE)"
    return f"if({is_cut}, CAST(raise_error({quoted(error)}) AS {field.data_type.spark_type}), {typed})"


def _null(field: FieldSpec, spec: TableSpec) -> str | None:
    """The SQL that replaces a null; None where nulls are kept."""
    key = field.name == spec.time_column or field.name in spec.primary_key
    newest = spec.upsert is not None and field.name == spec.upsert.comparison_column
    target = field.data_type.spark_type
    if key or newest or field.is_required:
        error = f"column '{field.name}' was given a null, which it cannot hold"
        return f"CAST(raise_error({quoted(error)}) AS {target})"
    return default_sql(field, spec)


def default_sql(field: FieldSpec, spec: TableSpec) -> str | None:
    """The Spark SQL of the value that replaces a null of a column; None where nulls are kept."""
    keeps_null = (spec.null_handling and not field.not_null) or field.sql_type is not None
    return None if keeps_null else f"CAST({_default(field.default_null)} AS {field.data_type.spark_type})"


def _default(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, datetime):
        return quoted(value.isoformat(sep=" "))
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, Decimal):
        return quoted(f"{value:f}")
    return quoted(str(value))


def _is_number(node: exp.Expr, types: ColumnTypes) -> bool:
    return is_millis(node) or kind_of(node, types) is not None


def _passes(node: exp.Expr, is_it: Callable[[exp.Expr], bool]) -> bool:
    """Whether one of the values that an expression may return satisfies `is_it`."""
    node = node.unnest()
    if is_it(node):
        return True
    if isinstance(node, exp.Case):
        default = node.args.get("default")
        values = [branch.args["true"] for branch in node.args["ifs"]] + ([default] if default is not None else [])
    elif isinstance(node, exp.Anonymous) and node.name.lower() in PASSING:
        values = node.expressions[1:] if node.name.lower() == "if" else node.expressions
    else:
        return False
    return any(_passes(value, is_it) for value in values)
