"""What a swap changes: the rows of the segments as they are, against the rows they will hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hybrid.lake.layout import quoted
from hybrid.spec.table_config import TableSpec
from hybrid.spec.types import DataType
from hybrid.spec.values import shortest_float
from hybrid.table import columns
from hybrid.table.liveness import winning_order

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SAMPLES_MAX = 5
_WEIGHT, _BEFORE, _AFTER, _KEY = "_hy_weight", "_hy_before", "_hy_after", "_hy_key"


@dataclass(frozen=True)
class Sample:
    """One difference: `change` is added, removed or changed; `before` and `after` are the user's columns."""

    change: str
    before: Mapping[str, object] | None
    after: Mapping[str, object] | None


@dataclass(frozen=True)
class Difference:
    """`rows_*` count stored rows without delete markers.

    With a primary key `added`, `removed` and `changed` count keys (the latest row of each); without one they are the
    multiset difference of rows, and nothing is `changed`. `identical` holds when not even a marker differs.
    """

    rows_before: int
    rows_after: int
    added: int = 0
    removed: int = 0
    changed: int = 0
    changed_columns: Mapping[str, int] = field(default_factory=dict)
    samples: tuple[Sample, ...] = ()
    identical: bool = False


def difference(spec: TableSpec, before: DataFrame, after: DataFrame) -> Difference:
    """Compares two frames of stored rows (hidden columns included); only user columns and delete marks count."""
    from pyspark.sql import functions as F

    groups = _multiset(spec, before, after)
    is_row, weight = F.col(columns.OP) == columns.OP_ROW, F.col(_WEIGHT)
    counts = groups.agg(
        _sum(F.when(is_row, F.col(_BEFORE))).alias("rows_before"),
        _sum(F.when(is_row, F.col(_AFTER))).alias("rows_after"),
        _sum(F.when(is_row & (weight > 0), weight)).alias("added"),
        _sum(F.when(is_row & (weight < 0), -weight)).alias("removed"),
        _sum(F.when(weight != 0, 1)).alias("differing"),
    ).first()
    assert counts is not None
    rows = (counts["rows_before"], counts["rows_after"])
    if counts["differing"] == 0:
        return Difference(*rows, identical=True)
    if spec.schema.primary_key:
        return _by_key(spec, before, after, rows)
    samples = _multiset_samples(spec, groups.where(is_row & (weight != 0)))
    return Difference(*rows, added=counts["added"], removed=counts["removed"], samples=samples)


def _multiset(spec: TableSpec, before: DataFrame, after: DataFrame) -> DataFrame:
    """One row for each distinct row, with its copies before and after and their difference."""
    from pyspark.sql import functions as F

    wanted = [*_user(spec), F.col(columns.OP)]
    both = before.select(*wanted, F.lit(-1).alias(_WEIGHT)).unionByName(after.select(*wanted, F.lit(1).alias(_WEIGHT)))
    weight = F.col(_WEIGHT)
    return both.groupBy(*wanted).agg(
        F.sum(_WEIGHT).alias(_WEIGHT),
        F.sum(F.when(weight < 0, 1).otherwise(0)).alias(_BEFORE),
        F.sum(F.when(weight > 0, 1).otherwise(0)).alias(_AFTER),
    )


def _multiset_samples(spec: TableSpec, differing: DataFrame) -> tuple[Sample, ...]:
    ordered = differing.orderBy(*_user(spec)).limit(SAMPLES_MAX).collect()
    names = spec.schema.column_names
    found = [(row[_WEIGHT], shown_row(spec, {name: row[name] for name in names})) for row in ordered]
    return tuple(Sample("added", None, row) if more > 0 else Sample("removed", row, None) for more, row in found)


def _by_key(spec: TableSpec, before: DataFrame, after: DataFrame, rows: tuple[int, int]) -> Difference:
    from pyspark.sql import functions as F

    old, new = latest(spec, before).alias("old"), latest(spec, after).alias("new")
    joined = old.join(new, F.col(f"old.{_KEY}") == F.col(f"new.{_KEY}"), "full_outer").select(
        F.coalesce(F.col(f"old.{_KEY}"), F.col(f"new.{_KEY}")).alias(_KEY),
        F.col("old.row").alias(_BEFORE),
        F.col("new.row").alias(_AFTER),
    )
    gone, come = F.col(_AFTER).isNull(), F.col(_BEFORE).isNull()
    differs = {name: _differs(name) for name in spec.schema.column_names}
    changed = ~gone & ~come & ~F.col(_BEFORE).eqNullSafe(F.col(_AFTER))
    counts = joined.agg(
        _sum(F.when(come, 1)),
        _sum(F.when(gone, 1)),
        _sum(F.when(changed, 1)),
        *(_sum(F.when(changed & differs[name], 1)) for name in differs),
    ).first()
    assert counts is not None
    added, removed, altered, *per_column = counts
    per_name = {name: count for name, count in zip(differs, per_column, strict=True) if count}
    samples = _key_samples(spec, joined.where(come | gone | changed)) if added or removed or altered else ()
    return Difference(*rows, added=added, removed=removed, changed=altered, changed_columns=per_name, samples=samples)


def _key_samples(spec: TableSpec, differing: DataFrame) -> tuple[Sample, ...]:
    found = []
    for row in differing.orderBy(_KEY).limit(SAMPLES_MAX).collect():
        before, after = (shown_row(spec, row[side].asDict()) if row[side] else None for side in (_BEFORE, _AFTER))
        change = "added" if before is None else "removed" if after is None else "changed"
        found.append(Sample(change, before, after))
    return tuple(found)


def shown_row(spec: TableSpec, row: dict[str, Any]) -> dict[str, Any]:
    """A sample as people read it: a FLOAT as its shortest decimal."""
    floats = {field.name for field in spec.schema.fields if field.data_type is DataType.FLOAT and field.single_value}
    return {
        name: shortest_float(value) if name in floats and value is not None else value for name, value in row.items()
    }


def latest(spec: TableSpec, rows: DataFrame) -> DataFrame:
    """(`_hy_key`, `row`), as structs: the winning row of each key. A key whose winner is a delete marker is absent."""
    from pyspark.sql import functions as F

    picked = F.struct(F.struct(*_user(spec)).alias("row"), F.col(columns.OP).alias("op"))
    best = rows.groupBy(key_struct(spec).alias(_KEY)).agg(
        F.max_by(picked, F.struct(*order_columns(spec))).alias("best")
    )
    return best.where(F.col("best.op") == columns.OP_ROW).select(_KEY, F.col("best.row").alias("row"))


def order_columns(spec: TableSpec) -> list[Column]:
    """By what the latest row of a key is greatest; on a table without upsert, by time and arrival."""
    order: Sequence[str] = winning_order(spec) if spec.upsert else (columns.TIME, *columns.ARRIVAL)
    return [quoted(name) for name in order]


def key_struct(spec: TableSpec) -> Column:
    """The primary key as one value."""
    from pyspark.sql import functions as F

    return F.struct(*(quoted(name) for name in spec.schema.primary_key))


def _user(spec: TableSpec) -> list[Column]:
    return [quoted(name) for name in spec.schema.column_names]


def _differs(name: str) -> Column:
    from pyspark.sql import functions as F

    return ~F.col(_BEFORE).getField(name).eqNullSafe(F.col(_AFTER).getField(name))


def _sum(of: Any) -> Column:
    from pyspark.sql import functions as F

    return F.coalesce(F.sum(of), F.lit(0))
