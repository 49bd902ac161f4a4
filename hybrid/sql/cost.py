"""Checks that a statement costs the same for each row, whatever its values are.

DuckDB interrupts a statement only between vectors of 2,048 rows. A thread that others wait for may run only statements
that compute a vector quickly: without functions whose cost grows with the length of a text or list.
"""

from __future__ import annotations

from sqlglot import exp

from hybrid.sql.allowed import word_set

_CALLS = word_set(
    """
    abs any_value approx_count_distinct arbitrary arg_max arg_min argmax argmin avg bool_and bool_or cbrt ceil
    ceiling coalesce cos count count_if count_star countif current_date date_diff date_part date_trunc datediff
    datepart datetrunc day dayofmonth dayofweek dayofyear degrees epoch epoch_ms exp first floor fmod fsum
    get_current_timestamp greatest hour if ifnull isfinite isinf isnan kahan_sum last least len length ln log log10
    log2 make_date make_timestamp make_timestamp_ms max max_by mean microsecond millisecond min min_by minute mod
    month nullif pi pow power quarter radians round row_number second sign sin sqrt stddev stddev_pop stddev_samp
    strlen sum tan time_bucket to_timestamp today trunc var_pop var_samp variance week weekday weekofyear year
    """
)
_NODES = (
    exp.Select, exp.From, exp.Where, exp.Group, exp.Having, exp.Order, exp.Ordered, exp.Limit, exp.Offset, exp.Table,
    exp.TableAlias, exp.Alias, exp.Column, exp.Identifier, exp.Star, exp.Literal, exp.Boolean, exp.Null, exp.Paren,
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Is, exp.In, exp.Between, exp.Case,
    exp.If, exp.Coalesce, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Anonymous, exp.Filter,
    exp.Distinct, exp.DataType, exp.DataTypeParam, exp.Subquery, exp.Tuple,
    exp.Interval, exp.Var, exp.Join, exp.With, exp.CTE,
)  # fmt: skip
_KINDS = frozenset(
    (
        exp.DType.BIGINT, exp.DType.INT, exp.DType.SMALLINT, exp.DType.TINYINT, exp.DType.DOUBLE, exp.DType.FLOAT,
        exp.DType.BOOLEAN, exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.DECIMAL, exp.DType.TIMESTAMPNTZ,
        exp.DType.UBIGINT, exp.DType.UINT, exp.DType.INT128,
    )
)  # fmt: skip
# With more nodes a row takes too long even if each node is cheap.
_NODES_MAX = 500


def has_constant_cost(tree: exp.Expr) -> bool:
    """Whether everything that a statement computes is known to cost the same for each row."""
    return all(place < _NODES_MAX and _is_cheap(node) for place, node in enumerate(tree.walk()))


def _is_cheap(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in _CALLS
    if isinstance(node, exp.Cast | exp.TryCast):
        return node.to.this in _KINDS
    return isinstance(node, _NODES)
