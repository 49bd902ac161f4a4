"""Expectations on single rows as Spark SQL conditions: each is written as a row expression and rewritten like one."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hybrid.config.expectations import Expectation, ExpectationKind
from hybrid.config.table_config import TableSpec
from hybrid.sql.row_sql import row_condition


def holds_sql(expectation: Expectation, spec: TableSpec, now_ms: int | None) -> str:
    """The Spark SQL of the condition under which a row meets an expectation.

    A null meets every range and every list of accepted values; only not_null rejects it. Errors as for
    `row_condition`, at the place of the expectation.
    """
    return row_condition(_TEXTS[expectation.kind](expectation), spec, expectation.place, now_ms=now_ms)


def refuse_wrong_conditions(expectations: Iterable[Expectation], spec: TableSpec) -> None:
    """SpecError, or UsageError for an option, for the first condition that cannot be read."""
    for expectation in expectations:
        if expectation.kind in ROW_KINDS:
            holds_sql(expectation, spec, now_ms=0)


def _not_null(expectation: Expectation) -> str:
    return f"{_name(expectation)} IS NOT NULL"


def _range(expectation: Expectation) -> str:
    name = _name(expectation)
    ends = ((">=", expectation.low), ("<=", expectation.high))
    tests = [f"{name} {sign} {_constant(end)}" for sign, end in ends if end is not None]
    return f"{name} IS NULL OR ({' AND '.join(tests)})"


def _accepted(expectation: Expectation) -> str:
    name = _name(expectation)
    return f"{name} IS NULL OR {name} IN ({', '.join(map(_constant, expectation.values))})"


def _name(expectation: Expectation) -> str:
    escaped = expectation.columns[0].replace('"', '""')
    return f'"{escaped}"'


def _constant(value: object) -> str:
    """Any value as a text literal, which the comparison converts to the column's type."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    escaped = text.replace("'", "''")
    return f"'{escaped}'"


_TEXTS: dict[ExpectationKind, Callable[[Expectation], str]] = {
    ExpectationKind.NOT_NULL: _not_null,
    ExpectationKind.RANGE: _range,
    ExpectationKind.ACCEPTED_VALUES: _accepted,
    ExpectationKind.SQL: lambda expectation: expectation.sql,
}
ROW_KINDS = frozenset(_TEXTS)
