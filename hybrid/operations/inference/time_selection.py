"""Chooses the time column of an inferred table, and says which values stand in the way of a better one.

Without `--time`, every value of the time column is a time. A column that is named may hold a few that are none, as it
may hold nulls: ingestion rejects both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hybrid.config.table_config import Half
from hybrid.errors import DataError, UsageError
from hybrid.operations.inference.column_sample import ColumnSample, TypeChoice
from hybrid.operations.inference.infer_options import InferOptions
from hybrid.operations.inference.inference_notes import NoteWriter
from hybrid.operations.inference.inferred_documents import PlannedColumn, named_column
from hybrid.operations.inference.record_sample import RecordSample
from hybrid.operations.inference.time_column import TimeChoice, find_time
from hybrid.records.outcome import shown

_MISFITS_MAX_PERCENT = 5
_MOST = 50  # errors speak of a column when at least half of its values are times


def times_of(
    fields: Sequence[ColumnSample],
    choices: Mapping[str, TypeChoice | None],
    names: Mapping[str, str],
    options: InferOptions,
) -> dict[str, TimeChoice]:
    """How fields hold times, by field. That of `--time` may hold a few values that are none."""
    found: dict[str, TimeChoice] = {}
    for column in fields:
        choice = choices[column.field]
        is_meant = options.time_column in {column.field, names.get(column.field)}
        misfits = _MISFITS_MAX_PERCENT if is_meant else 0
        time = find_time(column, choice, is_meant=is_meant, misfits_max_percent=misfits) if choice is not None else None
        if time is not None:
            found[column.field] = time
    return found


def choose_time_column(
    planned: Sequence[PlannedColumn],
    samples: Mapping[str, ColumnSample],
    sample: RecordSample,
    options: InferOptions,
    notes: NoteWriter,
) -> PlannedColumn | None:
    """The table's time column; None where the options say that there is none. `samples` are the values, by field.

    UsageError or DataError where no column can be it.
    """
    if options.without_time:
        return None
    if options.time_column is not None:
        named = named_column(planned, options.time_column, "--time")
        if named.time is None:
            raise _unfit(named, samples[named.field])
        return named
    candidates = [column for column in planned if column.time is not None]
    plain = [(column.time.rank, column) for column in candidates if column.time is not None and column.time.nulls == 0]
    if not plain:
        raise _none_found(planned, samples, sample)
    rank, best = min(plain, key=lambda ranked: ranked[0])
    notes.other_times(best, [column for column in candidates if column is not best])
    for time, column in _near_times(planned, samples, _MISFITS_MAX_PERCENT):
        if time.rank < rank:
            notes.likelier_time(best, column, time)
    return best


def _near_times(
    planned: Sequence[PlannedColumn], samples: Mapping[str, ColumnSample], misfits_max_percent: int
) -> list[tuple[TimeChoice, PlannedColumn]]:
    """Columns of which some values are no times, and at most so many; the likeliest time first."""
    others = [column for column in planned if column.time is None]
    tried = [
        (find_time(samples[column.field], column.choice, misfits_max_percent=misfits_max_percent), column)
        for column in others
    ]
    near = [(time, column) for time, column in tried if time is not None]
    return sorted(near, key=lambda pair: pair[0].rank)


def _unfit(named: PlannedColumn, sample: ColumnSample) -> UsageError:
    """The error for a column of `--time` that holds too many values that are no times."""
    hint = (
        "Times are epoch seconds to nanoseconds of the years 1975 to 2199, ISO 8601, or dates; at most "
        f"{_MISFITS_MAX_PERCENT} % of the values may be others. hybrid table init SOURCE --no-time makes a table "
        "without a time column."
    )
    time = find_time(sample, named.choice, is_meant=True, misfits_max_percent=_MOST)
    if time is not None:
        return UsageError(f"Too few values are times. {time.misfit_sentence(named.name)}", hint=hint)
    where = "It is null in the whole sample."
    if sample.values:
        where = f"The first one is {shown(sample.values[0].raw)} at {sample.values[0].place}."
    return UsageError(
        f"'{named.name}' is {named.type_name}, and not all of its values are times of one format. {where}", hint=hint
    )


def _none_found(
    planned: Sequence[PlannedColumn], samples: Mapping[str, ColumnSample], sample: RecordSample
) -> DataError:
    """The error without a column that has a time in every record. It names the column that comes nearest."""
    with_nulls = [(column.time, column) for column in planned if column.time is not None]
    near = [*with_nulls, *_near_times(planned, samples, _MISFITS_MAX_PERCENT)]
    if near:
        return _incomplete(*min(near, key=lambda pair: pair[0].rank), [column for _, column in with_nulls], sample)
    doubtful = _near_times(planned, samples, _MOST)
    names = ", ".join(column.name for column in planned[:20])
    hint = (
        "hybrid table init SOURCE --time COLUMN names one whose values are times; --no-time makes a table without, "
        "which moves by offsets."
    )
    if doubtful:
        time, column = doubtful[0]
        others = time.misfit_sentence(column.name)
        return DataError(f"No column of {sample.source} looks like a time. {others} Columns are: {names}.", hint=hint)
    return DataError(f"No column of {sample.source} looks like a time. Columns are: {names}.", hint=hint)


def _incomplete(
    time: TimeChoice, best: PlannedColumn, with_nulls: Sequence[PlannedColumn], sample: RecordSample
) -> DataError:
    """The error for a column of times that lacks a time in some records."""
    rest = "messages without a time become rejected rows"
    if sample.half is Half.OFFLINE:
        rest = "a job stops at a record without a time"
    hint = (
        f"hybrid table init SOURCE --time {best.name} takes it, and {rest}; --no-time makes a table without a time "
        "column."
    )
    if time.misfits:
        others = time.misfit_sentence(best.name)
        return DataError(f"No column of {sample.source} has a time in every record. {others}", hint=hint)
    nulls = ", ".join(f"'{column.name}' (null in {column.time.nulls:,})" for column in with_nulls if column.time)
    return DataError(f"No column of {sample.source} has a time in every record: {nulls}.", hint=hint)
