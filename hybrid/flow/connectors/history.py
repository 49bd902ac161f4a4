"""Loads history into the OFFLINE half: each commit holds some files of the source and the load's progress (R2).

The steps, and the state after a crash in each:
  read the load's progress from the half's state          nothing done
  stage the rows of the next files beside the halves      staged files, swept by the next commit
  take the OFFLINE lock; compare the progress again      nothing done; the next round continues from there
  one Delta commit: segments and the progress             these files are loaded, or not

The first commit records the version of the source, so that a continued load reads the same version. Moves and
replacements may commit in between: they keep the progress, and history only adds rows (R3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from hybrid.config.table_config import Half, TableSpec
from hybrid.errors import ConflictError, DataError, OvertakenError
from hybrid.flow.connectors.source import BYTES_PER_ROW, Source, SourcePiece, StagedBatch, raise_to
from hybrid.flow.segment_layout import SegmentLayout, named_segments, segment_layout_of
from hybrid.lake.commit import commit_act
from hybrid.lake.commit_context import new_act_id
from hybrid.lake.layout import in_files, physical_columns, quoted
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.lake.table_context import TableContext
from hybrid.lake.worker_files import WorkerFiles
from hybrid.table.state import next_act

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CHUNK_ROWS_MAX = 1_000_000


@dataclass(frozen=True)
class HistoryReport:
    """The result of a load: `rows` in `commits`, as one sentence. `done`: the whole source is loaded."""

    rows: int
    commits: int
    done: bool
    sentence: str

    @property
    def did_something(self) -> bool:
        """Whether something was committed."""
        return self.commits > 0


@dataclass(frozen=True)
class HistoryProgress:
    """The progress of a load, as the OFFLINE half stores it.

    `source` identifies the version of the source. `pieces` of its `pieces_all` are loaded. `offsets` are Kafka's
    highest among the rows, by `topic/partition`. `done`: nothing follows after it.
    """

    source: Mapping[str, Any]
    pieces: int = 0
    pieces_all: int = 0
    rows: int = 0
    bytes: int = 0
    offsets: Mapping[str, int] | None = None
    done: bool = False

    @classmethod
    def of(cls, half: HalfSnapshot, connector: str) -> HistoryProgress | None:
        """The progress of a connector; None before its first commit."""
        stored = half.offline.progress.get(connector)
        return cls(**stored) if stored is not None else None

    @property
    def is_complete(self) -> bool:
        """Whether this version of the source is loaded completely."""
        return self.pieces == self.pieces_all

    def to_json(self) -> dict[str, Any]:
        """As the commit stores it."""
        return {**vars(self), "source": dict(self.source), "offsets": dict(self.offsets or {})}


class Opener(Protocol):
    """Opens the source of a connector."""

    def begin(self) -> Source:
        """The source of a new load."""

    def resume(self, pinned: Mapping[str, Any]) -> Source:
        """The source of a continued load; DataError when it is not what was pinned."""

    def after(self, pinned: Mapping[str, Any]) -> Source | None:
        """The additions to a source that is loaded completely; None while there are none."""


def next_source(opener: Opener, progress: HistoryProgress | None) -> Source | None:
    """The source that a load reads next; None when there is nothing to read."""
    if progress is None:
        return opener.begin()
    return opener.after(progress.source) if progress.is_complete else opener.resume(progress.source)


def load_history(
    table: TableContext,
    connector: str,
    opener: Opener,
    stop: Callable[[], bool] = lambda: False,
    chunk_rows_max: int = CHUNK_ROWS_MAX,
) -> HistoryReport:
    """Loads what exists and is not loaded yet. It calls `stop` between commits.

    DataError when a record is no row of the table: earlier commits stay, and the load continues there.
    """
    path, rows, commits = table.layout.half(Half.OFFLINE), 0, 0
    half = open_half(path)
    progress = HistoryProgress.of(half, connector)
    if progress is not None and progress.done:
        return HistoryReport(0, 0, True, f"Nothing to load: '{connector}' is complete, {_loaded(progress)}.")
    source = next_source(opener, progress)
    while source is not None and not stop():
        before = progress.rows if progress is not None else 0
        try:
            source.check(table.spec, connector)
            progress = _load_chunk(table, connector, source, half, progress, chunk_rows_max)
        except OvertakenError:  # another process loads it too, or committed here
            progress = HistoryProgress.of(open_half(path), connector)
            source = next_source(opener, progress)
            continue
        rows, commits = rows + progress.rows - before, commits + 1
        table.bench.progress.step(
            f"loading '{connector}' into '{table.name}' (files, or runs of rows)",
            progress.pieces,
            progress.pieces_all,
        )
        if progress.is_complete:
            source = None if progress.done else opener.after(progress.source)
    done = progress is not None and progress.done
    end = "; stopped before its end" if source is not None else "" if done else "; it is followed"
    return HistoryReport(rows, commits, done, f"Loaded {rows} rows of '{connector}' into '{table.name}'{end}.")


def _load_chunk(
    table: TableContext,
    connector: str,
    source: Source,
    begun: HalfSnapshot,
    before: HistoryProgress | None,
    chunk_rows_max: int,
) -> HistoryProgress:
    so_far = before or HistoryProgress({})
    if so_far.is_complete:  # totals continue; this is the next source
        so_far = replace(so_far, source=dict(source.pinned), pieces=0, pieces_all=len(source.pieces))
    if len(source.pieces) != so_far.pieces_all:
        raise DataError(
            f"'{connector}' has {len(source.pieces)} parts (files, or runs of rows) where {so_far.pieces_all} were to "
            f"be loaded, of which {so_far.pieces} are: it is read otherwise than the load began. Nothing more was "
            "loaded.",
            hint="Put the connector's config back until this is loaded, or load into a new table.",
        )
    numbers = next_chunk(source.pieces, so_far.pieces, chunk_rows_max)
    act_id = new_act_id("history")
    with table.staging(act_id) as folder:
        staged = source.stage(table.bench.spark, table.spec, connector, numbers, folder) if numbers else None
        laying = _laid(table.spec, staged) if staged is not None else None
        with table.lock(Half.OFFLINE) as half:
            current = table.half(Half.OFFLINE)
            if current.table_id != begun.table_id:
                raise ConflictError(f"Table '{table.name}' was dropped and made again while '{connector}' was loaded.")
            if HistoryProgress.of(current, connector) != before:
                raise OvertakenError(f"Another process loads '{connector}' of '{table.name}' too.")
            after = _after(so_far, source, numbers, staged)
            frame, names = _segments(table, current, laying) if laying is not None else (None, [])
            detail = {"connector": connector, "rows": after.rows - so_far.rows, "segments": names}
            act = next_act(current.offline, act_id, "history", table.bench.now_iso(), detail)
            all_progress = {**current.offline.progress, connector: after.to_json()}
            deletes = current.offline.deletes + (staged.deletes if staged is not None else 0)
            state = replace(current.offline, act=act, progress=all_progress, deletes=deletes)
            if frame is None:
                half.commit_state(state, planned=current.version)
            else:
                commit_act(frame, WorkerFiles.of(table.bench, current.path), state, planned=current.version)
    return after


def next_chunk(pieces: Sequence[SourcePiece], first: int, rows_max: int) -> list[int]:
    """The numbers of the pieces of the next commit: at least one, then as many as `rows_max` allows."""
    chosen: list[int] = []
    rows = 0
    for number in range(first, len(pieces)):
        piece = pieces[number]
        rows += piece.rows if piece.rows is not None else piece.bytes // BYTES_PER_ROW
        if chosen and rows > rows_max:
            break
        chosen.append(number)
    return chosen


def _after(
    known: HistoryProgress, source: Source, numbers: Sequence[int], staged: StagedBatch | None
) -> HistoryProgress:
    offsets = dict(known.offsets or {})
    raise_to(offsets, staged.offsets if staged else {})
    return replace(
        known,
        pieces=known.pieces + len(numbers),
        rows=known.rows + (staged.rows if staged else 0),
        bytes=known.bytes + sum(source.pieces[number].bytes for number in numbers),
        offsets=offsets,
        done=source.is_last and known.pieces + len(numbers) == len(source.pieces),
    )


def _laid(spec: TableSpec, staged: StagedBatch) -> SegmentLayout:
    """The staged rows by segment, one for each time bucket."""
    from pyspark.sql import functions as F

    return segment_layout_of(spec, staged.frame, F.lit(0))


def _segments(table: TableContext, offline: HalfSnapshot, laying: SegmentLayout) -> tuple[DataFrame, list[str]]:
    """The rows under the names of their segments."""
    stored_columns = [quoted(name) for name, _ in physical_columns(table.spec, Half.OFFLINE)]
    rows, names = named_segments(table, offline, laying)
    return in_files(table.spec, rows.select(*stored_columns)), names


def _loaded(progress: HistoryProgress) -> str:
    return f"{progress.rows} rows"
