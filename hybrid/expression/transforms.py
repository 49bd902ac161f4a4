"""Applies the transforms and the filter of a half to records of messages and files.

After Pinot's ExpressionTransformer and FilterTransformer (RecordTransformerUtils has their order): transforms first,
sorted by the columns that they read, then the filter, then the conversion to the schema's types. A transform fills a
column only where the record has no value. An object or a list there is replaced when the transform returns another kind
of value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import NamedTuple

from hybrid.errors import DataError
from hybrid.expression.parse import parse_expression
from hybrid.expression.rules import Node
from hybrid.schema.ingestion import IngestionConfig
from hybrid.schema.jsontext import JsonFloat
from hybrid.schema.schema import Schema
from hybrid.schema.types import DataType

_FAILS = (DataError, ValueError, ArithmeticError, TypeError, LookupError, RecursionError)
_WHOLE = {DataType.INT, DataType.LONG}
_TEXT_SHOWN_MAX = 200
_DIGITS_MAX = 20


class _Step(NamedTuple):
    """A compiled transform. `cut`: the column holds whole numbers, so that a fraction is truncated, as in Java."""

    column: str
    evaluate: Node
    text: str
    cut: bool


class Transforms:
    """The transforms and the filter of a table's half, compiled."""

    def __init__(self, config: IngestionConfig, schema: Schema) -> None:
        whole = {field.name for field in schema.fields if field.data_type in _WHOLE and field.single_value}
        parsed = {transform.column: parse_expression(transform.function) for transform in config.transforms}
        self._steps = tuple(
            _Step(name, expression.evaluate, expression.text, name in whole) for name, expression in parsed.items()
        )
        self._filter = parse_expression(config.filter_function) if config.filter_function is not None else None
        self._lenient = config.continue_on_error
        expressions = [*parsed.values(), *([self._filter] if self._filter else [])]
        self.reads = frozenset(
            part for expression in expressions for name in expression.fields for part in (name, name.split(".", 1)[0])
        )

    def apply(self, record: Mapping[str, object], now_ms: int | None) -> dict[str, object] | None:
        """The record with the columns of the transforms, None when the filter drops it. DataError says what failed."""
        shaped = dict(record)
        for step in self._steps:
            self._transform(step, shaped, now_ms)
        return None if self._is_dropped(shaped, now_ms) else shaped

    def _transform(self, step: _Step, shaped: dict[str, object], now_ms: int | None) -> None:
        before = shaped.get(step.column)
        if before is not None and not isinstance(before, (dict, list, tuple)):
            return
        try:
            value = step.evaluate(shaped, now_ms)
        except _FAILS as error:
            if before is not None or self._lenient:
                return
            raise DataError(f"Column '{step.column}': {_failed('the transform', step.text, error)}") from error
        if value is None:
            shaped.pop(step.column, None)
        elif before is None or isinstance(before, dict) != isinstance(value, dict) or _is_single(value):
            shaped[step.column] = _cut(value) if step.cut else value

    def _is_dropped(self, shaped: Mapping[str, object], now_ms: int | None) -> bool:
        if self._filter is None:
            return False
        try:
            return self._filter.evaluate(shaped, now_ms) is True
        except _FAILS as error:
            if self._lenient:
                return False
            raise DataError(_failed("The filter", self._filter.text, error)) from error


def _is_single(value: object) -> bool:
    return not isinstance(value, (dict, list, tuple))


def _cut(value: object) -> object:
    """The value without its fraction. A decimal that no whole number column holds stays as it is, and is rejected."""
    if isinstance(value, JsonFloat):
        value = float(value)
    if isinstance(value, Decimal):
        return math.trunc(value) if value.is_finite() and value.adjusted() < _DIGITS_MAX else value
    return math.trunc(value) if isinstance(value, float) and math.isfinite(value) else value


def _failed(what: str, text: str, error: Exception) -> str:
    short = text if len(text) <= _TEXT_SHOWN_MAX else text[: _TEXT_SHOWN_MAX - 3] + "..."
    words = str(error).rstrip(".").encode("utf-8", "backslashreplace").decode()
    return f"{what} '{short}' failed: {words}{'' if words.endswith('?') else '.'}"
