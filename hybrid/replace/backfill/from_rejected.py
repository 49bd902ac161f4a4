"""Corrections by rejected rows: rows that convert now, with a time in the window, are added to the stored rows.

They keep the coordinates of their messages, under a replay's connector. Their messages are staged with the plan, and a
run claims them before its first commit (`hybrid.replace.backfill.claims`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from hybrid.lake.layout import quoted
from hybrid.lake.rejected import BROUGHT, HIGH, KIND, LOW, MESSAGE, WHY, rejected_rows
from hybrid.lake.staged_frames import stage_frame
from hybrid.progress import counted
from hybrid.replace.backfill.base import BUCKET, WHOLE, Base
from hybrid.replace.backfill.claims import stage_claims
from hybrid.replace.backfill.correction import SHARED, Correction
from hybrid.replace.backfill.request import Request
from hybrid.replace.backfill.row_replacement import added_rows
from hybrid.replace.backfill.values import check_corrected
from hybrid.table import columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_IN_WINDOW, _BUCKETS = "_hy_in_window", "_hy_buckets"


def corrected_by_rejected(base: Base, request: Request) -> Correction:
    """The correction that brings the rejected rows of the window. Its claims are staged in the base's folder."""
    assert base.realtime is not None, "a table without REALTIME rejects nothing"
    decoded = rejected_rows(base.bench, base.spec, base.realtime).decoded()
    staged = _with_window(base, stage_frame(base.bench, decoded, base.folder / "input"))
    coming = staged.where(_IN_WINDOW)
    rows = coming.where(quoted(KIND) == BROUGHT)
    _stage_claims(base, coming)
    correction = added_rows(base, rows, _by_message(base, rows))
    return replace(
        correction, checks=check_corrected(base, request, rows), warnings=(*correction.warnings, *_told(staged))
    )


def _with_window(base: Base, staged: DataFrame) -> DataFrame:
    """Adds whether a row belongs to a message whose rows all lie in the window."""
    from pyspark.sql import functions as F

    window = base.window
    inside = F.lit(True) if window is None else (F.col(LOW) >= window.start) & (F.col(HIGH) < window.end)
    comes = quoted(KIND).isin(BROUGHT, columns.OP_REPLAYED)
    return staged.withColumn(_IN_WINDOW, comes & F.coalesce(inside, F.lit(False)))


def _stage_claims(base: Base, coming: DataFrame) -> None:
    from pyspark.sql import functions as F

    bucket = f"{WHOLE}L" if base.window is None else base.window.bucket_sql(LOW)
    taken = coming.where(quoted(KIND) == columns.OP_REPLAYED)
    stage_claims(base, taken.withColumn(BUCKET, F.expr(bucket).cast("bigint")))


def _by_message(base: Base, rows: DataFrame) -> list[tuple[int, str]]:
    """Buckets that share a message: its rejected rows are claimed, or released, together."""
    from pyspark.sql import functions as F

    buckets = F.array_sort(F.collect_set(BUCKET)).alias(_BUCKETS)
    by_message = base.with_bucket(rows).groupBy(*(quoted(name) for name in MESSAGE)).agg(buckets)
    shared = by_message.where(f"size({_BUCKETS}) > 1").select(_BUCKETS).distinct().collect()
    return [(bucket, f"{SHARED}message-{number}") for number, row in enumerate(shared) for bucket in row[0]]


def _told(staged: DataFrame) -> Iterator[str]:
    """The number of rejected rows, and why some of them are not brought."""
    marked = staged.where(quoted(KIND) != BROUGHT).groupBy(KIND, WHY, _IN_WINDOW).count().collect()
    come = sum(row["count"] for row in marked if row[_IN_WINDOW])
    elsewhere = sum(row["count"] for row in marked if row[KIND] == columns.OP_REPLAYED and not row[_IN_WINDOW])
    dropped = sum(row["count"] for row in marked if row[KIND] == columns.OP_FILTERED)
    why = {row[WHY]: row["count"] for row in marked if row[KIND] == columns.OP_ROW}
    parts = [f"{come} of {counted(sum(row['count'] for row in marked), 'rejected row')} convert and come"]
    if elsewhere:
        parts.append(f"{elsewhere} convert and lie outside of the stretch")
    if dropped:
        parts.append(f"the table's filter drops {dropped}")
    if why:
        commonest = max(why, key=lambda reason: why[reason])
        parts.append(f"{sum(why.values())} do not convert (commonest reason: {commonest.removesuffix('.')})")
    yield "; ".join(parts) + "."
