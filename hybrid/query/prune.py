"""File pruning: which files of a half a table reference reads, and why not the others. By statistics alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hybrid.config.table_config import TableSpec
from hybrid.lake.log_entries import DataFile
from hybrid.schema.types import DataType
from hybrid.table.boundary import PartitionKey
from hybrid.table.columns import EPOCH, OFFSET, PARTITION, TIME, bookkeeping
from hybrid.table.effective import EffectiveBoundary
from hybrid.table.names import topic_in_name

if TYPE_CHECKING:  # the status of tables prunes without a statement, and without its parser
    from hybrid.sql.predicates import Comparison

BOOKKEEPING = "rejected rows"
COVERED = "covered by the boundary"
PAST = "past the boundary"
RULED_OUT = "ruled out by WHERE"

# Types whose statistics compare in Python as in DuckDB (floats have NaN, which statistics leave out).
_PRUNABLE = (DataType.INT, DataType.LONG, DataType.STRING)
# Delta's statistics keep only a prefix of longer strings.
_STRING_STATISTICS_MAX = 32


@dataclass(frozen=True)
class FileChoice:
    """The files to read, and the number of pruned files by reason."""

    read: tuple[DataFile, ...]
    pruned: Mapping[str, int] = field(default_factory=dict)


def prunable_columns(spec: TableSpec) -> list[str]:
    """The columns by which WHERE may prune files. On an upsert table only the key: winners are found before filters."""
    allowed = set(spec.primary_key) if spec.upsert else set(spec.schema.column_names)
    return [
        column.name
        for column in spec.schema.fields
        if column.name in allowed and column.single_value and column.data_type in _PRUNABLE
    ]


def choose_offline(
    files: Sequence[DataFile], boundary: EffectiveBoundary | None, comparisons: Sequence[Comparison]
) -> FileChoice:
    """Chooses offline files. `boundary` None shows the half as it is stored."""

    def reason(file: DataFile) -> str | None:
        if boundary is not None and _past(file, boundary):
            return PAST
        return RULED_OUT if not _possible(file, comparisons) else None

    return _choose(files, reason)


def choose_realtime(
    spec: TableSpec,
    files: Sequence[DataFile],
    boundary: EffectiveBoundary | None,
    known: Sequence[PartitionKey],
    comparisons: Sequence[Comparison],
) -> FileChoice:
    """Chooses realtime files. `boundary` None shows the half as it is stored; `known` lists all partitions read."""

    def reason(file: DataFile) -> str | None:
        if file.segment in bookkeeping(spec.name):
            return BOOKKEEPING
        if boundary is not None and is_covered(spec, file, boundary, known):
            return COVERED
        return RULED_OUT if not _possible(file, comparisons) else None

    return _choose(files, reason)


def _choose(files: Sequence[DataFile], reason_of: Callable[[DataFile], str | None]) -> FileChoice:
    read: list[DataFile] = []
    pruned: Counter[str] = Counter()
    for file in files:
        reason = reason_of(file)
        if reason is None:
            read.append(file)
        else:
            pruned[reason] += 1
    return FileChoice(tuple(read), dict(pruned))


def _possible(file: DataFile, comparisons: Sequence[Comparison]) -> bool:
    return all(
        comparison.possible(_bound(file.low.get(comparison.column)), _bound(file.high.get(comparison.column)))
        for comparison in comparisons
    )


def _bound(value: object) -> object:
    return None if isinstance(value, str) and len(value) >= _STRING_STATISTICS_MAX else value


def _past(file: DataFile, boundary: EffectiveBoundary) -> bool:
    """Whether no row of an offline file is visible, because its earliest lies past the boundary."""
    earliest = file.low.get(TIME)
    return isinstance(earliest, int) and not boundary.shows_offline(earliest)


def shows_all_offline(file: DataFile, boundary: EffectiveBoundary) -> bool:
    """Whether every row of an offline file is surely visible, because its latest lies before the boundary."""
    latest = file.high.get(TIME)
    return not boundary.restricts_offline or (isinstance(latest, int) and boundary.shows_offline(latest))


def shows_all_realtime(
    spec: TableSpec, file: DataFile, boundary: EffectiveBoundary, known: Sequence[PartitionKey]
) -> bool:
    """Whether every row of a realtime file is surely visible: by its earliest time, or by its first offset."""
    first, earliest = file.low.get(OFFSET), file.low.get(TIME)
    if boundary.limit_ms is None or (isinstance(earliest, int) and not boundary.covers_time(earliest)):
        return True
    if boundary.time_alone or not isinstance(first, int):
        return False
    fitting = _fitting(spec, file, known)
    return bool(fitting) and all(first >= boundary.frontier.get(key, 0) for key in fitting)


def is_covered(spec: TableSpec, file: DataFile, boundary: EffectiveBoundary, known: Sequence[PartitionKey]) -> bool:
    """Whether every row of a realtime file is surely covered: its latest time, and its last offsets."""
    last, latest = file.high.get(OFFSET), file.high.get(TIME)
    if spec.time_column and not isinstance(latest, int):
        return False
    if not boundary.covers_time(latest if isinstance(latest, int) else None):
        return False
    if boundary.time_alone:
        return True
    if not isinstance(last, int):
        return False
    fitting = _fitting(spec, file, known)
    return bool(fitting) and all(last < boundary.frontier.get(key, 0) for key in fitting)


def _fitting(spec: TableSpec, file: DataFile, known: Sequence[PartitionKey]) -> list[PartitionKey]:
    """The partitions that rows of a realtime file may come from.

    Statistics do not name connector and topic, so these are all partitions with a matching number. Where the name of
    the file's segment contains the topic, only partitions of this topic count.
    """
    fitting = [key for key in known if _within(file, PARTITION, key.partition) and _within(file, EPOCH, key.epoch)]
    topic = topic_in_name(spec.stream, file.segment) if spec.stream is not None else None
    return fitting if topic is None else [key for key in fitting if key.topic == topic]


def _within(file: DataFile, column: str, value: int) -> bool:
    low, high = file.low.get(column), file.high.get(column)
    return not (isinstance(low, int) and isinstance(high, int)) or low <= value <= high
