"""Generated rows as a source of history, after Feldera's `datagen`: each row is a function of seed, plan and number.

A load therefore pins the seed, the plans and the rows that are read. A plan without a rate is read whole, like a file.
A plan with a rate is read in consecutive windows, as its rows become due.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid.config.connectors import Datagen, DatagenPlan
from hybrid.config.datagen_values import record_maker
from hybrid.config.table_config import TableSpec
from hybrid.errors import DataError
from hybrid.flow.connectors.convert import Rows, stage, staged_ddl
from hybrid.flow.connectors.source import SourcePiece, StagedBatch

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_PIECE_ROWS = 100_000
_SLICE_ROWS = 10_000
_TASKS_PER_CORE = 2
_SEED_BITS = 63
# The most seconds that are made up for after a pause or a server's downtime, to avoid a flood of rows.
_DUE_S_MAX = 60


@dataclass(frozen=True)
class DatagenWindow:
    """Rows `first` to `first + rows - 1` of plan number `plan`. Later rows become due from `at_ms` on."""

    plan: int
    first: int
    rows: int
    at_ms: int


def first_window(config: Datagen, now_ms: int, plan: int = 0) -> DatagenWindow:
    """The first window of a plan: all its rows, or with a rate the rows of the first second."""
    chosen = config.plans[plan]
    limits = [number for number in (chosen.limit, chosen.rate) if number is not None]
    return DatagenWindow(plan, 0, min(limits), now_ms)


def next_window(config: Datagen, before: DatagenWindow, now_ms: int) -> DatagenWindow | None:
    """The window after `before`; None when no row is due yet, or when none remains."""
    plan, first = config.plans[before.plan], before.first + before.rows
    remaining = None if plan.limit is None else plan.limit - first
    if remaining == 0:
        return None if before.plan + 1 == len(config.plans) else first_window(config, now_ms, before.plan + 1)
    rate = plan.rate or 0
    passed_ms = min(now_ms - before.at_ms, _DUE_S_MAX * 1000)
    due = min(passed_ms * rate // 1000, remaining if remaining is not None else passed_ms * rate)
    if due <= 0:
        return None
    # The fraction of a row that is due already counts for the next window.
    return DatagenWindow(before.plan, first, due, now_ms - (passed_ms - due * 1000 // rate))


class DatagenSource:
    """The rows of one window. A commit brings at least `piece_rows` of them, if there are as many."""

    def __init__(self, config: Datagen, spec: TableSpec, seed: int, window: DatagenWindow, piece_rows: int) -> None:
        self._config, self._seed, self._window, self._piece_rows = config, seed, window, piece_rows
        plan = config.plans[window.plan]
        self._make = _Records(spec, plan, seed, window.plan)
        self._is_last = plan.limit == window.first + window.rows and window.plan + 1 == len(config.plans)

    @property
    def pinned(self) -> Mapping[str, object]:
        """See `Source`."""
        base = {"datagen": _digest(self._config), "seed": self._seed, "piece_rows": self._piece_rows}
        return {**base, **asdict(self._window)}

    @property
    def is_last(self) -> bool:
        """See `Source`."""
        return self._is_last

    @property
    def pieces(self) -> Sequence[SourcePiece]:
        """See `Source`: runs of rows."""
        runs = (self._run(number) for number in range(-(-self._window.rows // self._piece_rows)))
        return [SourcePiece(f"rows {run.start} to {run.stop - 1}", len(run), 0) for run in runs]

    def check(self, spec: TableSpec, connector: str) -> None:
        """See `Source`: it has every column of the table."""

    def highest_offsets(self, spark: SparkSession) -> dict[str, int] | None:
        """See `Source`: generated rows have none."""
        return None

    def stage(
        self, spark: SparkSession, spec: TableSpec, connector: str, numbers: Sequence[int], to: Path
    ) -> StagedBatch:
        """See `Source`."""
        runs = [self._run(number) for number in numbers]
        slices = [range(at, min(at + _SLICE_ROWS, run.stop)) for run in runs for at in run[::_SLICE_ROWS]]
        tasks = max(1, min(len(slices), _TASKS_PER_CORE * spark.sparkContext.defaultParallelism))
        worker = _worker(Rows(spec, connector), self._make, slices, self._window.plan)
        frame = spark.range(0, len(slices), 1, tasks).mapInArrow(worker, staged_ddl(spec))
        plans = [SourcePiece(f"plan[{number}]", None, 0) for number in range(len(self._config.plans))]
        return stage(frame, spec, connector, plans, to)

    def _run(self, number: int) -> range:
        first, end = self._window.first, self._window.first + self._window.rows
        start = first + number * self._piece_rows
        return range(start, min(start + self._piece_rows, end))


def open_datagen(
    config: Datagen, spec: TableSpec, pinned: Mapping[str, Any] | None, now_ms: int, piece_rows: int | None
) -> DatagenSource:
    """The source of a load that begins, or continues from `pinned`. DataError when the plans have changed since."""
    if pinned is not None:
        return _reopened(config, spec, pinned, _window_of(pinned))
    seed = config.seed if config.seed is not None else secrets.randbits(_SEED_BITS)
    return DatagenSource(config, spec, seed, first_window(config, now_ms), min(piece_rows or _PIECE_ROWS, _PIECE_ROWS))


def open_datagen_after(
    config: Datagen, spec: TableSpec, pinned: Mapping[str, Any], now_ms: int
) -> DatagenSource | None:
    """The rows that have become due since; None while there are none."""
    window = next_window(config, _window_of(pinned), now_ms)
    return _reopened(config, spec, pinned, window) if window is not None else None


def _reopened(config: Datagen, spec: TableSpec, pinned: Mapping[str, Any], window: DatagenWindow) -> DatagenSource:
    if pinned["datagen"] != _digest(config):
        raise DataError(
            "The plans or the seed are not those that the load began with. Nothing more was loaded.",
            hint="Put the old ones back, or load into a new table.",
        )
    return DatagenSource(config, spec, int(pinned["seed"]), window, int(pinned["piece_rows"]))


def _window_of(pinned: Mapping[str, Any]) -> DatagenWindow:
    return DatagenWindow(*(int(pinned[name]) for name in ("plan", "first", "rows", "at_ms")))


def _digest(config: Datagen) -> str:
    """A digest of the plans, which may hold long lists, because every commit holds it."""
    return sha256(repr(config).encode()).hexdigest()


class _Records:
    """Makes the records of a plan, in any process."""

    def __init__(self, spec: TableSpec, plan: DatagenPlan, seed: int, number: int) -> None:
        self._given = (spec, plan, seed, number)
        self._make = record_maker(spec.schema.fields, plan, seed, number, any_case=spec.ignores_case)

    def __reduce__(self) -> tuple[type[_Records], tuple[TableSpec, DatagenPlan, int, int]]:
        return _Records, self._given

    def __call__(self, row: int) -> Mapping[str, object]:
        return self._make(row)


def _worker(
    rows: Rows, make: _Records, slices: Sequence[range], plan: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark's workers run on the numbers of the slices."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                made = (rows.take(make(row), plan, row, f", row {row + 1}") for row in slices[number])
                yield from rows.batches(made)
        yield rows.told()

    return run
