"""The difference that a swap makes: the current rows of segments against their new rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hybrid.config.table_config import TableSpec
from hybrid.lake.collect import collect_rows
from hybrid.lake.layout import quoted
from hybrid.lake.spark_upsert_order import best_by, key_struct, order_struct
from hybrid.schema.types import DataType
from hybrid.schema.values import shortest_float
from hybrid.table import columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SAMPLES_MAX = 5
_WEIGHT, _BEFORE, _AFTER, _KEY = "_hy_weight", "_hy_before", "_hy_after", "_hy_key"
_GROUP, _PLACE = "_hy_group", "_hy_place"


@dataclass(frozen=True)
class Sample:
    """One difference. `change` is added, removed or changed; `before` and `after` hold the user columns."""

    change: str
    before: Mapping[str, object] | None
    after: Mapping[str, object] | None


@dataclass(frozen=True)
class Difference:
    """The difference between two sets of stored rows. `rows_*` count rows without delete markers.

    Where every primary key shows one row, `added`, `removed` and `changed` count keys. Elsewhere, and where a key
    shows several rows, they are the multiset difference of rows, and `changed` is 0. `identical` also requires equal
    delete markers.
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
    """Compares two frames of stored rows with their hidden columns. Only user columns and delete marks count."""
    from pyspark.sql import functions as F

    group = F.lit(0).alias(_GROUP)
    of_group = differences(spec, before.withColumn(_GROUP, group), after.withColumn(_GROUP, group), _GROUP)
    return of_group.get(0, Difference(0, 0, identical=True))


def differences(spec: TableSpec, before: DataFrame, after: DataFrame, group: str) -> dict[Any, Difference]:
    """The difference of the rows for each value of the column `group`. Values without rows are absent."""
    from pyspark.sql import functions as F

    rows = _multiset(spec, before, after, group)
    is_row, weight = F.col(columns.OP) == columns.OP_ROW, F.col(_WEIGHT)
    counted = rows.groupBy(group).agg(
        _sum(F.when(is_row, F.col(_BEFORE))).alias("rows_before"),
        _sum(F.when(is_row, F.col(_AFTER))).alias("rows_after"),
        _sum(F.when(is_row & (weight > 0), weight)).alias("added"),
        _sum(F.when(is_row & (weight < 0), -weight)).alias("removed"),
        _sum(F.when(weight != 0, 1)).alias("differing"),
    )
    result: dict[Any, Difference] = {}
    for row in counted.collect():
        identical = row["differing"] == 0
        numbers = (row["rows_before"], row["rows_after"], row["added"], row["removed"])
        result[row[group]] = Difference(*numbers, identical=identical)
    if all(diff.identical for diff in result.values()):
        return result
    if spec.picks_winners or (spec.schema.primary_key and not spec.folds and _is_unique(spec, before, after, group)):
        return {**result, **_by_key(spec, before, after, group, result)}
    samples = _multiset_samples(spec, rows.where(is_row & (weight != 0)), group)
    return {value: replace(diff, samples=tuple(samples.get(value, ()))) for value, diff in result.items()}


def _multiset(spec: TableSpec, before: DataFrame, after: DataFrame, group: str) -> DataFrame:
    """One row for each distinct row, with its number of copies before and after and their difference."""
    from pyspark.sql import functions as F

    compared = [F.col(group), *_user(spec), F.col(columns.OP)]
    both = before.select(*compared, F.lit(-1).alias(_WEIGHT)).unionByName(
        after.select(*compared, F.lit(1).alias(_WEIGHT))
    )
    weight = F.col(_WEIGHT)
    return both.groupBy(*compared).agg(
        F.sum(_WEIGHT).alias(_WEIGHT),
        F.sum(F.when(weight < 0, 1).otherwise(0)).alias(_BEFORE),
        F.sum(F.when(weight > 0, 1).otherwise(0)).alias(_AFTER),
    )


def _is_unique(spec: TableSpec, before: DataFrame, after: DataFrame, group: str) -> bool:
    """Whether no key has two rows on either side. Without upsert all rows of a key are visible."""
    from pyspark.sql import functions as F

    keys = [quoted(group), *(quoted(name) for name in spec.schema.primary_key)]
    both = before.select(*keys, F.lit(-1).alias(_WEIGHT)).unionByName(after.select(*keys, F.lit(1).alias(_WEIGHT)))
    return not both.groupBy(*keys, _WEIGHT).count().where("count > 1").head(1)


def _multiset_samples(spec: TableSpec, differing: DataFrame, group: str) -> dict[Any, list[Sample]]:
    samples: dict[Any, list[Sample]] = defaultdict(list)
    for row in _first_few(differing, group, _user(spec)):
        shown = shown_row(spec, {name: row[name] for name in spec.schema.column_names})
        more = row[_WEIGHT] > 0
        samples[row[group]].append(Sample("added", None, shown) if more else Sample("removed", shown, None))
    return samples


def _by_key(
    spec: TableSpec, before: DataFrame, after: DataFrame, group: str, found: Mapping[Any, Difference]
) -> dict[Any, Difference]:
    from pyspark.sql import functions as F

    old, new = latest(spec, before, group).alias("old"), latest(spec, after, group).alias("new")
    same = (F.col(f"old.{_KEY}") == F.col(f"new.{_KEY}")) & F.col(f"old.{group}").eqNullSafe(F.col(f"new.{group}"))
    joined = old.join(new, same, "full_outer").select(
        F.coalesce(F.col(f"old.{group}"), F.col(f"new.{group}")).alias(group),
        F.coalesce(F.col(f"old.{_KEY}"), F.col(f"new.{_KEY}")).alias(_KEY),
        F.col("old.row").alias(_BEFORE),
        F.col("new.row").alias(_AFTER),
    )
    gone, come = F.col(_AFTER).isNull(), F.col(_BEFORE).isNull()
    differs = {name: _differs(name) for name in spec.schema.column_names}
    changed = ~gone & ~come & ~F.col(_BEFORE).eqNullSafe(F.col(_AFTER))
    counts = joined.groupBy(group).agg(
        _sum(F.when(come, 1)),
        _sum(F.when(gone, 1)),
        _sum(F.when(changed, 1)),
        *(_sum(F.when(changed & differs[name], 1)) for name in differs),
    )
    samples = _key_samples(spec, joined.where(come | gone | changed), group)
    numbers = {row[0]: tuple(row)[1:] for row in counts.collect()}
    result: dict[Any, Difference] = {}
    for value, diff in found.items():
        if diff.identical:
            continue
        added, removed, altered, *per_column = numbers.get(value, (0, 0, 0))
        per_name = {name: count for name, count in zip(differs, per_column, strict=False) if count}
        result[value] = Difference(
            diff.rows_before, diff.rows_after, added, removed, altered, per_name, tuple(samples.get(value, ()))
        )
    return result


def _key_samples(spec: TableSpec, differing: DataFrame, group: str) -> dict[Any, list[Sample]]:
    samples: dict[Any, list[Sample]] = defaultdict(list)
    for row in _first_few(differing, group, [quoted(_KEY)]):
        before, after = (shown_row(spec, row[side]) if row[side] else None for side in (_BEFORE, _AFTER))
        change = "added" if before is None else "removed" if after is None else "changed"
        samples[row[group]].append(Sample(change, before, after))
    return samples


def _first_few(rows: DataFrame, group: str, order: Sequence[Column]) -> list[dict[str, Any]]:
    """The first `SAMPLES_MAX` rows of each group, in order. Spark would run them all once more to sort the result."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    place = F.row_number().over(Window.partitionBy(group).orderBy(*order))
    few = collect_rows(rows.withColumn(_PLACE, place).where(F.col(_PLACE) <= SAMPLES_MAX))
    return sorted(few, key=lambda row: row[_PLACE])


def shown_row(spec: TableSpec, row: dict[str, Any]) -> dict[str, Any]:
    """A sample in readable form: a FLOAT becomes its shortest decimal."""
    floats = {field.name for field in spec.schema.fields if field.data_type is DataType.FLOAT and field.single_value}
    return {
        name: shortest_float(value) if name in floats and value is not None else value for name, value in row.items()
    }


def latest(spec: TableSpec, rows: DataFrame, group: str) -> DataFrame:
    """(`group`, `_hy_key`, `row`), the last two as structs: the winning row of each key of a group.

    A key whose winner is a delete marker is absent.
    """
    from pyspark.sql import functions as F

    picked = F.struct(F.struct(*_user(spec)).alias("row"), F.col(columns.OP).alias("op"))
    best = rows.groupBy(group, key_struct(spec).alias(_KEY)).agg(best_by(spec, picked, order_of(spec)).alias("best"))
    return best.where(F.col("best.op") == columns.OP_ROW).select(group, _KEY, F.col("best.row").alias("row"))


def order_of(spec: TableSpec) -> Column:
    """The order that decides the winning row of a key; time and arrival where no single row wins."""
    from pyspark.sql import functions as F

    if spec.picks_winners:
        return order_struct(spec)
    return F.struct(*(quoted(name) for name in (columns.TIME, *columns.ARRIVAL)))


def _user(spec: TableSpec) -> list[Column]:
    return [quoted(name) for name in spec.schema.column_names]


def _differs(name: str) -> Column:
    from pyspark.sql import functions as F

    return ~F.col(_BEFORE).getField(name).eqNullSafe(F.col(_AFTER).getField(name))


def _sum(of: Any) -> Column:
    from pyspark.sql import functions as F

    return F.coalesce(F.sum(of), F.lit(0))
