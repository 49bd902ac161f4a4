"""Loads history into the OFFLINE half: some files of the source in one commit, with how far the load has come (R2).

The sequence, and what a death in between leaves:
  read the half's state: how far did the load come?       nothing done
  stage the rows of the next files beside the halves      staged files, swept by the next act
  take the OFFLINE lock; did the load go on meanwhile?    nothing done; the next round goes on from there
  one Delta commit: segments and the progress             these files are loaded, or not

The version of the source stands in the first commit, so that a load that goes on reads what it began to read. Moves and
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
from hybrid.lake.commit_context import CommitContext, new_act_id
from hybrid.lake.layout import TableLayout, in_files, physical_columns, quoted
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.table.state import next_act

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CHUNK_ROWS_MAX = 1_000_000


@dataclass(frozen=True)
class HistoryReport:
    """What a load did: `rows` in `commits`, in one sentence. `done`: the source is loaded whole."""

    rows: int
    commits: int
    done: bool
    sentence: str


@dataclass(frozen=True)
class HistoryProgress:
    """How far a load has come, as the OFFLINE half says it.

    `source` is what names the version of the source; `pieces` of its `pieces_all` are loaded; `offsets` are the highest
    of Kafka among the rows, by `topic/partition`. `done`: nothing comes after it.
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
        """That of a connector; None before its first commit."""
        found = half.offline.progress.get(connector)
        return cls(**found) if found is not None else None

    @property
    def is_complete(self) -> bool:
        """Whether this version of the source is loaded whole."""
        return self.pieces == self.pieces_all

    def to_json(self) -> dict[str, Any]:
        """As the commit carries it."""
        return {**vars(self), "source": dict(self.source), "offsets": dict(self.offsets or {})}


class Opener(Protocol):
    """Opens what a connector reads."""

    def begin(self) -> Source:
        """The source of a load that begins."""

    def resume(self, pinned: Mapping[str, Any]) -> Source:
        """That of a load that goes on; DataError when it is not what was pinned."""

    def after(self, pinned: Mapping[str, Any]) -> Source | None:
        """What came after a source that is loaded whole; None while there is nothing."""


def next_source(opener: Opener, progress: HistoryProgress | None) -> Source | None:
    """What a load reads next; None when nothing is there to be read."""
    if progress is None:
        return opener.begin()
    return opener.after(progress.source) if progress.is_complete else opener.resume(progress.source)


def load_history(
    bench: CommitContext,
    spec: TableSpec,
    layout: TableLayout,
    connector: str,
    opener: Opener,
    stop: Callable[[], bool] = lambda: False,
    chunk_rows_max: int = CHUNK_ROWS_MAX,
) -> HistoryReport:
    """Loads what is there and not loaded yet; `stop` is asked between commits.

    DataError when a record is no row of the table: what was committed before stays, and the load goes on there.
    """
    path, rows, commits = layout.half(Half.OFFLINE), 0, 0
    half = open_half(path)
    progress = HistoryProgress.of(half, connector)
    if progress is not None and progress.done:
        return HistoryReport(0, 0, True, f"Nothing to load: '{connector}' is complete, {_loaded(progress)}.")
    source = next_source(opener, progress)
    while source is not None and not stop():
        before = progress.rows if progress is not None else 0
        try:
            source.check(spec, connector)
            progress = _load_chunk(bench, spec, layout, connector, source, half, progress, chunk_rows_max)
        except OvertakenError:  # somebody else loads it too, perhaps from a newer version; or acted here
            progress = HistoryProgress.of(open_half(path), connector)
            source = next_source(opener, progress)
            continue
        rows, commits = rows + progress.rows - before, commits + 1
        bench.progress.step(
            f"loading '{connector}' into '{spec.name}' (files, or runs of rows)", progress.pieces, progress.pieces_all
        )
        if progress.is_complete:
            source = None if progress.done else opener.after(progress.source)
    done = progress is not None and progress.done
    end = "; stopped before its end" if source is not None else "" if done else "; it is followed"
    return HistoryReport(rows, commits, done, f"Loaded {rows} rows of '{connector}' into '{spec.name}'{end}.")


def _load_chunk(
    bench: CommitContext,
    spec: TableSpec,
    layout: TableLayout,
    connector: str,
    source: Source,
    begun: HalfSnapshot,
    before: HistoryProgress | None,
    chunk_rows_max: int,
) -> HistoryProgress:
    known = before or HistoryProgress({})
    if known.is_complete:  # with what was read before; this is the next source
        known = replace(known, source=dict(source.pinned), pieces=0, pieces_all=len(source.pieces))
    if len(source.pieces) != known.pieces_all:
        raise DataError(
            f"'{connector}' has {len(source.pieces)} parts (files, or runs of rows) where {known.pieces_all} were to "
            f"be loaded, of which {known.pieces} are: it is read otherwise than the load began. Nothing more was "
            "loaded.",
            hint="Put the connector's config back until this is loaded, or load into a new table.",
        )
    numbers = next_chunk(source.pieces, known.pieces, chunk_rows_max)
    act_id = new_act_id("history")
    with bench.staging(layout, act_id) as folder:
        staged = source.stage(bench.spark, spec, connector, numbers, folder) if numbers else None
        laying = _laid(spec, staged) if staged is not None else None
        with bench.lock(layout, Half.OFFLINE):
            current = open_half(layout.half(Half.OFFLINE))
            if current.table_id != begun.table_id:
                raise ConflictError(f"Table '{spec.name}' was dropped and made again while '{connector}' was loaded.")
            if HistoryProgress.of(current, connector) != before:
                raise OvertakenError(f"Another process loads '{connector}' of '{spec.name}' too.")
            after = _after(known, source, numbers, staged)
            frame, names = _segments(bench, spec, current, laying)
            detail = {"connector": connector, "rows": after.rows - known.rows, "segments": names}
            act = next_act(current.offline, act_id, "history", bench.now_iso(), detail)
            kept = {**current.offline.progress, connector: after.to_json()}
            deletes = current.offline.deletes + (staged.deletes if staged is not None else 0)
            state = replace(current.offline, act=act, progress=kept, deletes=deletes)
            commit_act(frame, layout.half(Half.OFFLINE), state, planned=current.version)
    return after


def next_chunk(pieces: Sequence[SourcePiece], first: int, rows_max: int) -> list[int]:
    """The numbers of the pieces that the next commit loads: at least one, then as many as `rows_max` allows."""
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
    """The staged rows by segments, one for each bucket of time."""
    from pyspark.sql import functions as F

    return segment_layout_of(spec, staged.frame, F.lit(0))


def _segments(
    bench: CommitContext, spec: TableSpec, offline: HalfSnapshot, laying: SegmentLayout | None
) -> tuple[DataFrame, list[str]]:
    """The rows under the names of their segments."""
    wanted = [quoted(name) for name, _ in physical_columns(spec, Half.OFFLINE)]
    if laying is None:
        nothing = bench.spark.read.format("delta").load(str(offline.path)).limit(0)
        return nothing.select(*wanted), []
    rows, names = named_segments(bench, spec, offline, laying)
    return in_files(spec, rows.select(*wanted)), names


def _loaded(progress: HistoryProgress) -> str:
    return f"{progress.rows} rows"
