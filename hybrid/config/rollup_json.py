"""Reads how a rollup combines metrics: Pinot's `<metric>.aggregationType`.

Pinot's tasks have sum, min and max for numbers, and sketches. Its avg combines a serialized pair of sum and count.
Here the pair is two metrics of the schema, which queries can read. Pinot has no count: here a move counts rows once,
and later merges add the counts up.
"""

from __future__ import annotations

from collections.abc import Mapping

from hybrid.config.table_config import Aggregation, kept_for_average
from hybrid.schema.document import Section
from hybrid.schema.named_column import column
from hybrid.schema.schema import FieldKind, FieldSpec, Schema
from hybrid.schema.types import DataType

AGGREGATION_SUFFIX = ".aggregationType"
_WHOLE = {DataType.INT, DataType.LONG}
_BROKEN = {DataType.FLOAT, DataType.DOUBLE, DataType.BIG_DECIMAL}
_NUMBERS = _WHOLE | _BROKEN


def parse_aggregations(section: Section, schema: Schema) -> dict[str, Aggregation]:
    """The aggregations that a task names, by metric. SpecError for a column that is no metric or has another type."""
    aggregations: dict[str, Aggregation] = {}
    for key in section.doc:
        if not key.endswith(AGGREGATION_SUFFIX):
            continue
        field = column(section, key, key.removesuffix(AGGREGATION_SUFFIX), schema)
        if field.kind is not FieldKind.METRIC:
            section.fail(key, f"'{field.name}' is a {field.kind} field: rows are told apart by it. Only metrics are.")
        aggregations[field.name] = Aggregation(section.choice(key, tuple(Aggregation)))
        _check_type(section, key, field, aggregations[field.name])
    for name, aggregation in aggregations.items():
        if aggregation is Aggregation.AVG:
            _check_kept(section, schema, schema.find(name), aggregations)
    return aggregations


def rolled_up(
    section: Section, schema: Schema, given: Mapping[str, Aggregation]
) -> tuple[tuple[str, Aggregation], ...]:
    """The aggregation of each metric: the `given` one, else the sum. SpecError for a metric that is no number."""
    metrics = [field for field in schema.fields if field.kind is FieldKind.METRIC]
    for field in metrics:
        if field.data_type not in _NUMBERS:
            message = f"'rollup' cannot combine the metric '{field.name}', which is {field.data_type}: only numbers."
            section.fail("mergeType", f"{message} List it under dimensionFieldSpecs, or use concat.")
    return tuple((field.name, given.get(field.name, Aggregation.SUM)) for field in metrics)


def _check_type(section: Section, key: str, field: FieldSpec, aggregation: Aggregation) -> None:
    kind = field.data_type
    if kind not in _NUMBERS:
        section.fail(key, f"'{field.name}' is {kind} and cannot be combined: only numbers can.")
    if aggregation is Aggregation.COUNT and kind not in _WHOLE:
        section.fail(key, f"'{field.name}' is {kind}; a count is a whole number. Make it LONG.")
    if aggregation is Aggregation.AVG and kind not in _BROKEN:
        section.fail(key, f"'{field.name}' is {kind}; an average is seldom whole. Make it DOUBLE or BIG_DECIMAL.")


def _check_kept(section: Section, schema: Schema, field: FieldSpec | None, given: Mapping[str, Aggregation]) -> None:
    """SpecError unless the schema keeps the sum and the count of an average: averages of averages would be wrong."""
    assert field is not None
    key = f"{field.name}{AGGREGATION_SUFFIX}"
    for name, kinds in zip(kept_for_average(field.name), (_NUMBERS, _WHOLE), strict=True):
        metric = schema.find(name)
        if metric is None or metric.kind is not FieldKind.METRIC or metric.data_type not in kinds:
            sum_name, count_name = kept_for_average(field.name)
            section.fail(
                key,
                f"'avg' needs the sum and the count of '{field.name}', or averages of averages come out: the schema "
                f"has no metric '{name}' of numbers{' that are whole' if kinds is _WHOLE else ''}.",
                hint=f"Add the metrics {sum_name} and {count_name} (LONG), with the transforms '{field.name}' and "
                f"'CASE WHEN {field.name} IS NULL THEN 0 ELSE 1 END'.",
            )
        if given.get(name, Aggregation.SUM) is not Aggregation.SUM:
            section.fail(f"{name}{AGGREGATION_SUFFIX}", f"'{name}' is kept for the average '{key}': it is a sum.")
