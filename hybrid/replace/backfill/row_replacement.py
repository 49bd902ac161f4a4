"""Corrections by rows from outside: in every bucket that they reach, they replace the stored rows.

Buckets of the window that they do not reach stay unchanged. Rows of the window's segments in no differing bucket are
carried over under their segment's name; incoming rows get new segments. Rows that are only added change no existing
segment.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half
from hybrid.errors import DataError
from hybrid.lake.layout import physical_columns, quoted
from hybrid.lake.log import segments_in_lineage
from hybrid.lake.spark_upsert_order import best, key_struct
from hybrid.lake.staged_frames import stage_frame
from hybrid.progress import counted
from hybrid.replace.backfill.base import BUCKET, KEY, LIVE, ORDER, Base
from hybrid.replace.backfill.correction import SHARED, Correction
from hybrid.replace.backfill.request import Request
from hybrid.replace.diff import Difference, differences
from hybrid.replace.duplicates import refuse_duplicate_keys
from hybrid.replace.inherited_arrival import in_taken_places
from hybrid.replace.places import place_in_files
from hybrid.replace.plan import stage_markers
from hybrid.replace.stage import StagedRows
from hybrid.replace.stale_rows import compared, ignored_warnings
from hybrid.table import columns
from hybrid.table.names import exact_time, offline_segment, time_words
from hybrid.table.plans import Counts
from hybrid.table.upsert_order import REPLACEMENT_CONNECTOR, first_wins, replacement_topic

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# The staging folder of the rows that will be live.
LIVE_AFTER = "live"
_NAMED = "_hy_named"
_IS_ROW = f"{columns.OP} = '{columns.OP_ROW}'"


@dataclass(frozen=True)
class _ArrivalRows:
    """The incoming rows, on their base.

    `fresh` are the rows as they will be stored, with BUCKET and without a segment's name. `goes` selects the stored
    rows that they replace; None means all rows of the buckets that they reach. With `beside` they are added whatever
    difference they make.
    """

    base: Base
    fresh: DataFrame
    goes: Column | None = None
    beside: bool = False

    @cached_property
    def leaves(self) -> Column:
        """True for stored rows that are removed when their bucket is corrected; never null."""
        from pyspark.sql import functions as F

        goes = quoted(BUCKET).isin(self.reached) if self.goes is None else self.goes
        return F.col(BUCKET).isNotNull() & goes

    @cached_property
    def wanted(self) -> list[Column]:
        """The stored columns."""
        return _stored_columns(self.base)

    @cached_property
    def reached(self) -> list[int]:
        """The buckets that the rows reach, and the buckets of replaced rows."""
        frame = self.fresh.select(BUCKET)
        if self.goes is not None:
            frame = frame.unionByName(self.there.where(quoted(BUCKET).isNotNull() & self.goes).select(BUCKET))
        return sorted(row[0] for row in frame.distinct().collect())

    @cached_property
    def markers(self) -> DataFrame | None:
        """On an upsert table, a delete marker for each key of the reached buckets that has no incoming row.

        None where rows keep their coordinates: the remaining versions decide what is live.
        """
        base = self.base
        if self.goes is not None:
            return None
        before = self.there.where(quoted(BUCKET).isin(self.reached))
        staged = stage_markers(base.bench, base.spec, before, self.fresh, base.folder)
        return base.with_bucket(staged) if staged is not None else None

    @cached_property
    def arriving(self) -> DataFrame:
        """Incoming rows and markers."""
        return self.fresh if self.markers is None else self.fresh.unionByName(self.markers)

    @cached_property
    def there(self) -> DataFrame:
        """The stored rows of the candidates, with BUCKET."""
        frame = self.base.in_segments(self.base.candidates)
        return self.base.with_bucket(frame.select(*self.wanted))


def _stored_columns(base: Base) -> list[Column]:
    return [quoted(name) for name, _ in physical_columns(base.spec, Half.OFFLINE)]


def _as_replacement(base: Base, staged: DataFrame) -> DataFrame:
    """Rows from files, with the coordinates of rows that arrive at the swap."""
    from pyspark.sql import functions as F

    latest = base.realtime.realtime.timestamp_max if base.realtime is not None else None
    constants = {
        columns.SEGMENT: F.lit(""),
        columns.CONNECTOR: F.lit(REPLACEMENT_CONNECTOR),
        columns.TOPIC: F.lit(fresh_topic(base)),
        columns.EPOCH: F.lit(0),
        columns.PARTITION: F.lit(0),
        columns.TIMESTAMP: F.lit(latest or 0).cast("bigint"),
    }
    fresh = base.with_bucket(staged.withColumns(constants).select(*_stored_columns(base)))
    if not (first_wins(base.spec) or base.spec.folds):
        return fresh
    there = base.with_bucket(base.in_segments(base.candidates))
    there = there.join(fresh.select(BUCKET).distinct(), BUCKET, "left_semi")
    return base.with_bucket(in_taken_places(base.spec, there, fresh.drop(BUCKET)))


def fresh_topic(base: Base) -> str:
    """The topic column of rows that will arrive at the swap; no stored row has it."""
    return replacement_topic(base.offline.offline.act.number + 1)


def corrected_arrivals(base: Base, request: Request, staged: StagedRows) -> Correction:
    """The correction that replaces all rows of the staged rows' buckets by them.

    DataError when a row lies outside the window, or when a key appears twice with one comparison value.
    """
    _refuse_outside(base, request, staged)
    refuse_duplicate_keys(base.spec, request.files, request.csv_format, staged)
    return _correction(_ArrivalRows(base, _as_replacement(base, staged.frame)))


def added_rows(base: Base, rows: DataFrame, shared: Sequence[tuple[int, str]] = ()) -> Correction:
    """The correction that adds rows to the window and keeps their coordinates.

    `shared` are buckets that must be swapped together, under names that begin with SHARED.
    """
    from pyspark.sql import functions as F

    fresh = base.with_bucket(rows.select(*_stored_columns(base)))
    return _correction(_ArrivalRows(base, fresh, F.lit(False), beside=True), shared)


def rebuilt_rows(base: Base, rows: DataFrame, goes: Column) -> Correction:
    """The correction that adds rows to the window, keeps their coordinates, and removes the rows `goes`."""
    return _correction(_ArrivalRows(base, base.with_bucket(rows.select(*_stored_columns(base))), goes))


def _correction(arrivals: _ArrivalRows, shared: Sequence[tuple[int, str]] = ()) -> Correction:
    base = arrivals.base
    diffs = _differences(arrivals)
    differing = [
        bucket for bucket in arrivals.reached if arrivals.beside or (bucket in diffs and not diffs[bucket].identical)
    ]
    per_segment = _held(arrivals)
    counts = {bucket: Counts(rows, rows) for bucket, rows in _rows_of(per_segment).items()}
    counts |= {bucket: _counts(diff) for bucket, diff in diffs.items()}
    names = _names(arrivals, differing)
    replaced = [pair for pair in _left_by(arrivals, per_segment) if pair[0] in set(differing)]
    pairs = [*replaced, *names.items(), *_by_shared_keys(arrivals, differing), *shared]
    samples = {bucket: [vars(sample) for sample in diffs[bucket].samples] for bucket in differing if bucket in diffs}
    touched = {segment for _, segment in replaced}
    return Correction(
        counts,
        pairs,
        lambda: _rows(arrivals, touched, differing, names),
        needs_sort=True,
        samples=samples,
        new=frozenset(names.values()),
        warnings=(
            *_left_alone(arrivals, counts),
            *_dead_on_arrival(base, arrivals, counts),
            *_hidden_elsewhere(diffs, differing),
        ),
    )


def _by_shared_keys(arrivals: _ArrivalRows, differing: Sequence[int]) -> list[tuple[int, str]]:
    """On an upsert table, buckets with versions of one key, before or after, are swapped together.

    Else a key could disappear, or an older version of it reappear, between two commits.
    """
    from pyspark.sql import functions as F

    if not arrivals.base.spec.picks_winners or len(differing) < 2:
        return []
    key = key_struct(arrivals.base.spec).alias(KEY)
    versions = arrivals.arriving.select(BUCKET, key)
    if not arrivals.beside:
        versions = arrivals.there.select(BUCKET, key).unionByName(versions)
    buckets = F.array_sort(F.collect_set(BUCKET)).alias("buckets")
    shared = versions.where(quoted(BUCKET).isin(list(differing))).groupBy(KEY).agg(buckets)
    groups = shared.where("size(buckets) > 1").select("buckets").distinct().collect()
    return [(bucket, f"{SHARED}{number}") for number, row in enumerate(groups) for bucket in row[0]]


def _left_alone(arrivals: _ArrivalRows, counts: Mapping[int, Counts]) -> Iterator[str]:
    if arrivals.goes is not None:
        return
    alone = {bucket: count.rows_before for bucket, count in counts.items() if bucket not in set(arrivals.reached)}
    if any(alone.values()):
        buckets = counted(len([rows for rows in alone.values() if rows]), "bucket")
        yield (
            f"The input has no row for {buckets} of the window with {counted(sum(alone.values()), 'row')}: what is "
            "there stays. (To remove it, plan a --delete.)"
        )


def _hidden_elsewhere(found: Mapping[int, Difference], differing: Sequence[int]) -> Iterator[str]:
    hidden = sum(diff.removed for bucket, diff in found.items() if bucket not in set(differing))
    if hidden:
        yield f"{counted(hidden, 'row')} of other buckets will be hidden by newer versions in the input."


def _dead_on_arrival(base: Base, arrivals: _ArrivalRows, counts: Mapping[int, Counts]) -> Iterator[str]:
    if base.spec.folds and arrivals.goes is None:
        shown = base.with_bucket(base.shown())
        stays = shown.where(~arrivals.leaves | (quoted(columns.OP) == columns.OP_DELETE))  # markers are carried over
        others = stays.select(*compared(base.spec)).unionByName(base.unmoved().select(*compared(base.spec)))
        yield from ignored_warnings(base.spec, arrivals.fresh, others, fresh_topic(base))
    if base.spec.upsert is None or not base.spec.picks_winners:
        return
    coming = arrivals.fresh.where(_IS_ROW).select(key_struct(base.spec)).distinct().count()
    live = sum(counts[bucket].rows_after for bucket in arrivals.reached if bucket in counts)
    if live < coming:
        higher = f"another version has a higher {base.spec.upsert.comparison_column}"
        why = "another row of the key arrived first" if first_wins(base.spec) else higher
        yield f"{counted(coming - live, 'key')} of the input will not show what the input says: {why}."


def _refuse_outside(base: Base, request: Request, staged: StagedRows) -> None:
    window = base.window
    if window is None:
        return
    first = staged.frame.where(f"{columns.TIME} < {window.start} OR {columns.TIME} >= {window.end}").orderBy(
        columns.OFFSET
    )
    row = first.select(columns.OFFSET, columns.TIME).first()
    if row is not None:
        place = place_in_files(request.files, request.csv_format, row[0])
        raise DataError(
            f"{place}: its time {time_words(base.spec, row[1])} is outside of --from and --to. Nothing was changed.",
            hint="Widen the window, or leave the row out.",
        )


def _held(arrivals: _ArrivalRows) -> dict[tuple[int, str], int]:
    """The number of visible rows of each (bucket, segment) of the window; 0 for only markers and dead versions."""
    from pyspark.sql import functions as F

    frame, shown = arrivals.there, F.col(columns.OP) == columns.OP_ROW
    if arrivals.base.spec.picks_winners:
        frame, shown = arrivals.base.with_live(frame), shown & F.col(LIVE)
    counts = frame.where(F.col(BUCKET).isNotNull()).groupBy(BUCKET, columns.SEGMENT).agg(F.count_if(shown)).collect()
    return {(bucket, segment): rows for bucket, segment, rows in counts}


def _left_by(arrivals: _ArrivalRows, held: Mapping[tuple[int, str], int]) -> list[tuple[int, str]]:
    """The (bucket, segment) of the window whose segment is rewritten when the bucket is corrected."""
    if arrivals.goes is None:
        return list(held)
    if arrivals.beside:
        return []
    leaving = arrivals.there.where(arrivals.leaves).select(BUCKET, columns.SEGMENT).distinct().collect()
    return sorted((row[0], row[1]) for row in leaving)


def _rows_of(held: Mapping[tuple[int, str], int]) -> dict[int, int]:
    rows: dict[int, int] = defaultdict(int)
    for (bucket, _), count in held.items():
        rows[bucket] += count
    return rows


def _differences(arrivals: _ArrivalRows) -> dict[int, Difference]:
    """The difference of each reached bucket. On an upsert table of every bucket, because a row may hide one elsewhere.

    There the live rows are compared, as queries show them.
    """
    base, reached = arrivals.base, quoted(BUCKET).isin(arrivals.reached)
    if not base.spec.picks_winners:
        there = arrivals.there.where(reached)
        after = there.where(~arrivals.leaves).unionByName(arrivals.arriving)
        return differences(base.spec, there, after, BUCKET)
    before = base.with_live(arrivals.there.where(f"{BUCKET} IS NOT NULL")).where(LIVE).drop(LIVE)
    after = stage_frame(base.bench, _live_after(arrivals), base.folder / LIVE_AFTER)  # they are compared in three ways
    return differences(base.spec, before, after, BUCKET)


def _live_after(arrivals: _ArrivalRows) -> DataFrame:
    """The rows of the window that will be live among all rows after the correction."""
    from pyspark.sql import functions as F

    base, spec = arrivals.base, arrivals.base.spec
    keyed = key_struct(spec).alias(KEY)
    beyond = base.with_bucket(base.shown()).where(F.col(BUCKET).isNull())
    stays = arrivals.there.where(F.col(BUCKET).isNotNull() & ~arrivals.leaves)
    of_window = stays.unionByName(arrivals.arriving)
    versions = base.elsewhere().unionByName(beyond.select(keyed, base.order.alias(ORDER)))
    versions = versions.unionByName(of_window.select(keyed, base.order.alias(ORDER)))
    keys = of_window.select(keyed).distinct()
    won = versions.join(keys, KEY, "left_semi").groupBy(KEY).agg(best(spec, F.col(ORDER)).alias("_hy_best"))
    mine = of_window.withColumns({KEY: key_struct(spec), ORDER: base.order})
    return mine.join(won, KEY).where(F.col(ORDER).eqNullSafe(F.col("_hy_best"))).drop(KEY, ORDER, "_hy_best")


def _counts(one: Difference) -> Counts:
    return Counts(one.rows_before, one.rows_after, one.added, one.removed, one.changed, one.changed_columns)


def _names(arrivals: _ArrivalRows, differing: Iterable[int]) -> dict[int, str]:
    """A free name for the segment of each differing bucket, by the first and last time of its incoming rows."""
    from pyspark.sql import functions as F

    base = arrivals.base
    taken = {file.segment for file in base.offline.files} | segments_in_lineage(base.offline)
    chosen = arrivals.arriving.where(quoted(BUCKET).isin(list(differing)))
    stored = quoted(base.spec.time_column or columns.TIME)
    ends = (F.min(columns.TIME), F.max(columns.TIME), F.min(stored), F.max(stored))
    names: dict[int, str] = {}
    for bucket, low, high, first, last in sorted(tuple(row) for row in chosen.groupBy(BUCKET).agg(*ends).collect()):
        low_value, high_value = exact_time(base.spec, low, first), exact_time(base.spec, high, last)
        names[bucket] = offline_segment(base.spec.name, low_value, high_value, taken)
        taken.add(names[bucket])
    return names


def _rows(
    arrivals: _ArrivalRows, touched: Iterable[str], differing: Iterable[int], names: Mapping[int, str]
) -> DataFrame:
    from pyspark.sql import functions as F

    base, chosen = arrivals.base, quoted(BUCKET).isin(list(differing))
    stays = quoted(columns.SEGMENT).isin(list(touched)) & (F.col(BUCKET).isNull() | ~chosen | ~arrivals.leaves)
    carried = arrivals.there.where(stays).select(*arrivals.wanted)
    ddl = f"{BUCKET} bigint, {_NAMED} string"
    named = F.broadcast(base.bench.session.createDataFrame(list(names.items()), ddl))
    coming = arrivals.arriving.where(chosen).join(named, BUCKET).withColumn(columns.SEGMENT, F.col(_NAMED))
    return carried.unionByName(coming.select(*arrivals.wanted))
