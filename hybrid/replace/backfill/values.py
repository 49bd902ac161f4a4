"""Corrections of stored rows: changes values of matching rows, or removes them.

A row stays in its segment and keeps its coordinates, so its order among the versions of its key does not change. On an
upsert table only live rows match. A removed row becomes a delete marker with the same coordinates, so older versions
of its key stay hidden, late ones too. Where rows are combined (`spec.folds`), all rows match, as on a table without a
key. The remaining rows are then combined as if the removed ones had never arrived.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from hybrid.config.expectations import ExpectationKind, OnFailure
from hybrid.config.table_config import Half, TableSpec
from hybrid.lake.collect import collect_rows
from hybrid.lake.exact_decimals import with_exact_decimals
from hybrid.lake.layout import physical_columns, quoted
from hybrid.replace.backfill.base import BUCKET, LIVE, Base
from hybrid.replace.backfill.correction import Correction
from hybrid.replace.backfill.request import ChangeKind, Request
from hybrid.replace.check_result import CheckResult
from hybrid.replace.checks import check
from hybrid.replace.diff import shown_row
from hybrid.table import columns
from hybrid.table.plans import Counts

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SAMPLED_BUCKETS, SAMPLES_MAX = 8, 10
_HIT = "_hy_hit"
_NEW = "_hy_new_"


def corrected_values(base: Base, request: Request) -> Correction:
    """The correction that `request` (UPDATE or DELETE) makes. One pass over the window's rows counts it."""
    marked = _marked(base, request, base.rows())
    counts, hits = _count(base, request, marked)
    pairs = list(hits)
    touched = sorted({segment for _, segment in pairs})
    samples = _samples(base.spec, request, marked, sorted({bucket for bucket, _ in pairs}))
    checks = _check(base, request, marked) if pairs else ()

    def rows() -> DataFrame:
        return _changed(base, request, _marked(base, request, base.rows(touched)))

    keyed, lost = base.spec.picks_winners, dict.fromkeys(touched, 0)
    if request.kind is ChangeKind.DELETE and not keyed:
        for (_, segment), count in hits.items():
            lost[segment] += count
    return Correction(counts, pairs, rows, needs_sort=keyed, samples=samples, checks=checks, lost_rows=lost)


def _marked(base: Base, request: Request, rows: DataFrame) -> DataFrame:
    """The rows with HIT, and the new value of each assigned column beside the old one.

    HIT of an update is true only where a value really changes.
    """
    return with_exact_decimals(rows, lambda exact: _with_new_values(base, request, exact))


def _with_new_values(base: Base, request: Request, rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    subject = F.col(BUCKET).isNotNull() & (F.col(columns.OP) == columns.OP_ROW)
    if base.spec.picks_winners:
        subject &= F.col(LIVE)
    if request.where is not None:
        subject &= F.coalesce(F.expr(request.where), F.lit(False))
    if request.kind is ChangeKind.DELETE:
        return rows.withColumn(_HIT, subject)
    # Only matching rows are computed, so an overflow in another row raises no error.
    kinds = {field.name: field.spark_type for field in base.spec.schema.fields}
    new = {_NEW + name: F.when(F.col(_HIT), F.expr(sql)).cast(kinds[name]) for name, sql in request.assignments.items()}
    differs = reduce(or_, (_differs(name) for name in request.assignments))
    return rows.withColumn(_HIT, subject).withColumns(new).withColumn(_HIT, F.col(_HIT) & differs)


def _differs(name: str) -> Column:
    from pyspark.sql import functions as F

    return ~quoted(name).eqNullSafe(F.col(f"`{_NEW}{name}`"))


def check_corrected(base: Base, request: Request, rows: DataFrame) -> tuple[CheckResult, ...]:
    """Results of the expectations on corrected rows, except those on the row count.

    No row is dropped: what `drop` would drop fails.
    """
    of_rows = [
        replace(expectation, on_failure=OnFailure.FAIL) if expectation.on_failure is OnFailure.DROP else expectation
        for expectation in request.expectations
        if expectation.kind is not ExpectationKind.ROW_COUNT_CHANGE
    ]
    return check(base.spec, rows, of_rows, None, now_ms=base.bench.now_ms()).results if of_rows else ()


def _check(base: Base, request: Request, marked: DataFrame) -> tuple[CheckResult, ...]:
    """Results of the expectations on the rows with their new values."""
    if request.kind is ChangeKind.DELETE or not request.expectations:
        return ()
    return check_corrected(base, request, _changed(base, request, marked.where(_HIT)))


def _count(base: Base, request: Request, marked: DataFrame) -> tuple[dict[int, Counts], dict[tuple[int, str], int]]:
    """The counts of each bucket, and the number of hits of each (bucket, segment) that has any."""
    from pyspark.sql import functions as F

    counted = F.col(columns.OP) == columns.OP_ROW
    if base.spec.picks_winners:
        counted &= F.col(LIVE)
    names = list(request.assignments)
    segment_counts = (
        marked.where(F.col(BUCKET).isNotNull())
        .groupBy(BUCKET, columns.SEGMENT)
        .agg(
            F.count_if(counted),
            F.count_if(_HIT),
            *(F.count_if(F.col(_HIT) & _differs(name)) for name in names),
        )
        .collect()
    )
    per_bucket: dict[int, list[tuple[int, ...]]] = defaultdict(list)
    hits_of = {}
    for bucket, segment, rows, hits, *changed in segment_counts:
        per_bucket[bucket].append((rows, hits, *changed))
        if hits:
            hits_of[bucket, segment] = hits
    return {bucket: _counts(request, names, numbers) for bucket, numbers in per_bucket.items()}, hits_of


def _counts(request: Request, names: Sequence[str], numbers: Sequence[tuple[int, ...]]) -> Counts:
    rows, hits, *changed = (sum(column) for column in zip(*numbers, strict=True))
    if request.kind is ChangeKind.DELETE:
        return Counts(rows, rows - hits, removed=hits)
    per_column = {name: count for name, count in zip(names, changed, strict=True) if count}
    return Counts(rows, rows, changed=hits, changed_columns=per_column)


def _samples(
    spec: TableSpec, request: Request, marked: DataFrame, buckets: Sequence[int]
) -> dict[int, list[Mapping[str, object]]]:
    """A few differences of the first buckets, before and after."""
    if not buckets:
        return {}
    user = [quoted(name) for name in spec.schema.column_names]
    new = [quoted(_NEW + name) for name in request.assignments]
    few = [
        marked.where(f"{BUCKET} = {bucket} AND {_HIT}").select(BUCKET, *user, *new).limit(SAMPLES_MAX)
        for bucket in buckets[:SAMPLED_BUCKETS]
    ]
    samples: dict[int, list[Mapping[str, object]]] = defaultdict(list)
    for row in collect_rows(reduce(lambda rows, more: rows.unionByName(more), few)):
        before = shown_row(spec, {name: row[name] for name in spec.schema.column_names})
        changed = {name: row[_NEW + name] for name in request.assignments}
        removed = request.kind is ChangeKind.DELETE
        after: Any = None if removed else shown_row(spec, {**before, **changed})
        samples[row[BUCKET]].append({"change": "removed" if removed else "changed", "before": before, "after": after})
    return dict(samples)


def _changed(base: Base, request: Request, marked: DataFrame) -> DataFrame:
    """The rows as they will be, stored columns only."""
    from pyspark.sql import functions as F

    hit = F.col(_HIT)
    names = [name for name, _ in physical_columns(base.spec, Half.OFFLINE)]
    if request.kind is ChangeKind.UPDATE:
        new = {name: F.when(hit, F.col(f"`{_NEW}{name}`")).otherwise(quoted(name)) for name in request.assignments}
        return marked.select(*(new[name].alias(name) if name in new else quoted(name) for name in names))
    if not base.spec.picks_winners:
        return marked.where(~hit).select(*(quoted(name) for name in names))
    return marked.select(*(_of_marker(base.spec, name, hit).alias(name) for name in names))


def _of_marker(spec: TableSpec, name: str, hit: Column) -> Column:
    """A column of a row that becomes a delete marker where `hit`. Columns that decide which version wins are kept."""
    from pyspark.sql import functions as F

    if name == columns.OP:
        return F.when(hit, F.lit(columns.OP_DELETE)).otherwise(quoted(name))
    assert spec.upsert is not None
    deciding = {*spec.schema.primary_key, spec.time_column, spec.upsert.comparison_column}
    if name.startswith(columns.PREFIX) or name in deciding:
        return quoted(name)
    return F.when(hit, F.lit(None)).otherwise(quoted(name))
