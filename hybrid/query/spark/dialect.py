"""Names, texts and functions of partial upsert in Spark SQL."""

from __future__ import annotations

from hybrid.query import partial_upsert as fold


def identifier(name: str) -> str:
    """A quoted name."""
    return "`" + name.replace("`", "``") + "`"


def _listed(value: str, place: str) -> str:
    """All values in order as a list; null instead of an empty list."""
    pairs = f"collect_list(CASE WHEN {value} IS NOT NULL THEN named_struct('place', {place}, 'value', {value}) END)"
    return f"CASE WHEN count({value}) > 0 THEN transform(array_sort({pairs}), one -> one.value) END"


FOLDING = fold.SqlDialect(
    identifier,
    lambda field: field.spark_type,
    last=lambda value, place: f"max_by({value}, CASE WHEN {value} IS NOT NULL THEN {place} END)",
    at_last=lambda value, place: f"max_by({value}, {place})",
    first=lambda value, place: f"min_by({value}, CASE WHEN {value} IS NOT NULL THEN {place} END)",
    listed=_listed,
    total=lambda value, place: f"aggregate({_listed(value, place)}, 0D, (sum, one) -> sum + CAST(one AS DOUBLE))",
    united=lambda values: f"array_sort(array_distinct({values}))",
)
