"""Replay: rejected rows that convert by the current settings become rows of the table, in one commit (R2, R6).

The commit holds the rows, in sealed segments under the replay's own coordinates (see `hybrid.table.replays`). It also
marks the rejected rows that were replayed, and updates the reasons of the remaining ones. So at any moment a row is
either rejected or in the table, and a second replay finds what is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half, TableSpec
from hybrid.errors import SpecError
from hybrid.lake.commit import commit_act
from hybrid.lake.commit_context import new_act_id
from hybrid.lake.layout import physical_columns, quoted
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.lake.rejected import BROUGHT, KIND, WHY, RejectedRows, rejected_rows
from hybrid.lake.table_context import TableContext
from hybrid.lake.worker_files import WorkerFiles
from hybrid.progress import counted
from hybrid.runtime.json_values import capitalized
from hybrid.runtime.sentence_repr import shown_as_sentence
from hybrid.table import columns
from hybrid.table.boundary import PartitionKey
from hybrid.table.names import replay_segment
from hybrid.table.replays import REPLAY, replay_key
from hybrid.table.state import RealtimeState, next_act

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

REASONS_MAX = 10
OF_A_FLOW = "A flow brought it: correct its source, and run the flow with --full-refresh."
_KEY = (columns.CONNECTOR, columns.TOPIC, columns.EPOCH, columns.PARTITION)


@shown_as_sentence
@dataclass(frozen=True)
class ReplayReport:
    """The result of a replay of `rejected` rows.

    `replayed` of them became `rows` of the table; the table's filter dropped `filtered`; `left` remain rejected.
    `reasons` say why ([{"reason", "rows"}], the most frequent first). `version` None: nothing was committed.
    """

    table: str
    rejected: int
    replayed: int
    rows: int
    filtered: int
    left: int
    reasons: tuple[Mapping[str, object], ...]
    segments: tuple[str, ...]
    version: int | None
    sentence: str
    dry_run: bool = False

    @property
    def did_something(self) -> bool:
        """Whether something was committed."""
        return self.version is not None


@dataclass(frozen=True)
class _Piece:
    """The replayed rows of one partition, identified by its origin."""

    origin: PartitionKey
    first: int
    last: int
    rows: int
    deletes: int


@dataclass(frozen=True)
class _Tally:
    """The counts after decoding again. `reasons` count rejected rows, the most frequent first."""

    pieces: tuple[_Piece, ...]
    replayed: int
    filtered: int
    left: int
    reasons: tuple[tuple[str, int], ...]

    @property
    def rows(self) -> int:
        return sum(piece.rows for piece in self.pieces)

    @property
    def taken(self) -> int:
        """The rejected rows that leave the rejected segment's count."""
        return self.replayed + self.filtered


@dataclass(frozen=True)
class _Found:
    """The rejected rows of a half, decoded again."""

    snapshot: HalfSnapshot
    rejected: RejectedRows
    decoded: DataFrame
    tally: _Tally


def replay_rejected(table: TableContext, *, dry_run: bool = False, act_id: str | None = None) -> ReplayReport:
    """Replay the rejected rows that convert now, in one commit. Commits nothing when none does.

    Raises SpecError when the table has no REALTIME half.
    """
    if Half.REALTIME not in table.spec.halves:
        raise SpecError(f"Table '{table.name}' has no REALTIME half, which alone rejects rows.")
    path = table.layout.half(Half.REALTIME)
    if not open_half(path).realtime.rejected:  # before a JVM is started
        return _report(table.spec, _Tally((), 0, 0, 0, ()), dry_run)
    with nullcontext() if dry_run else table.lock(Half.REALTIME):
        snapshot = open_half(path)
        table.bench.progress.say(f"Reading the rejected rows of '{table.name}' once more.")
        rejected = rejected_rows(table.bench, table.spec, snapshot)
        decoded = rejected.decoded().persist()
        try:
            tally = _tally(rejected, decoded)
            if dry_run or not tally.taken:
                return _report(table.spec, tally, dry_run)
            replay = _Found(snapshot, rejected, decoded, tally)
            return _commit(table, replay, act_id or new_act_id("replay"))
        finally:
            decoded.unpersist()


def _tally(rejected: RejectedRows, decoded: DataFrame) -> _Tally:
    from pyspark.sql import functions as F

    # Coordinates divide the rows that enter the table, and reasons those that stay: one statement counts both.
    is_brought, offset = quoted(KIND) == BROUGHT, quoted(columns.OFFSET)
    places = [F.when(is_brought, quoted(name)).alias(name) for name in _KEY]
    deletes = F.count_if(quoted(columns.OP) == columns.OP_DELETE)
    groups = (
        decoded.groupBy(KIND, WHY, *places)
        .agg(F.min(offset), F.max(offset), F.count("*").alias("count"), deletes)
        .collect()
    )
    pieces = [_Piece(_origin(*row[2:6]), *row[6:]) for row in groups if row[KIND] == BROUGHT]
    marked = [row for row in groups if row[KIND] != BROUGHT]
    of_flows = rejected.others.where(quoted(columns.OP) == columns.OP_ROW).count()
    why = {row[WHY]: row["count"] for row in marked if row[KIND] == columns.OP_ROW}
    reasons = {**why, **({OF_A_FLOW: of_flows} if of_flows else {})}

    def count(kind: str) -> int:
        return sum(row["count"] for row in marked if row[KIND] == kind)

    return _Tally(
        tuple(sorted(pieces, key=lambda piece: piece.origin)),
        count(columns.OP_REPLAYED),
        count(columns.OP_FILTERED),
        sum(reasons.values()),
        tuple(sorted(reasons.items(), key=lambda reason_count: (-reason_count[1], reason_count[0]))),
    )


def _origin(connector: str, topic: str, epoch: int, partition: int) -> PartitionKey:
    return PartitionKey(connector.removeprefix(REPLAY), topic, epoch, partition)


def _commit(table: TableContext, found: _Found, act_id: str) -> ReplayReport:
    snapshot, tally = found.snapshot, found.tally
    state = snapshot.realtime
    keys = _keys(state, tally.pieces)
    number, now_ms = state.act.number + 1, table.bench.now_ms()
    groups = {piece: table.spec.group(piece.origin.topic, piece.origin.partition) for piece in tally.pieces}
    names = {piece: replay_segment(table.name, group, number, now_ms) for piece, group in groups.items()}
    segments = tuple(sorted(set(names.values())))
    detail = {
        "replayed": tally.replayed,
        "rows": tally.rows,
        "filtered": tally.filtered,
        "rejected": tally.left,
        "segments": list(segments),
    }
    offsets = dict(state.offsets)
    for piece, key in keys.items():
        offsets[key] = max(piece.last + 1, offsets.get(key, 0))
    after = replace(
        state,
        act=next_act(state, act_id, "replay", table.bench.now_iso(), detail),
        offsets=offsets,
        rejected=tally.left,
        filtered=state.filtered + tally.filtered,
        deletes=state.deletes + sum(piece.deletes for piece in tally.pieces),
        ingested=state.ingested + tally.rows,
    )
    frame = _frame(table, found, [(keys[piece], piece, names[piece]) for piece in tally.pieces])
    places = (columns.rejected_segment(table.name), *segments)
    version = commit_act(
        frame,
        WorkerFiles.of(table.bench, table.layout.half(Half.REALTIME)),
        after,
        planned=snapshot.version,
        replacing=places,
    )
    return _report(table.spec, tally, False, segments, version)


def _keys(state: RealtimeState, pieces: Sequence[_Piece]) -> dict[_Piece, PartitionKey]:
    """The coordinates of each piece, assigned one by one: two epochs of one origin may have the same offsets."""
    offsets, keys = dict(state.offsets), {}
    for piece in pieces:
        keys[piece] = replay_key(offsets, piece.origin, piece.first)
        offsets[keys[piece]] = piece.last + 1
    return keys


def _frame(table: TableContext, found: _Found, named: Sequence[tuple[PartitionKey, _Piece, str]]) -> DataFrame:
    """The rejected rows with their marks, and the replayed rows with their own epochs and segments."""
    from pyspark.sql import functions as F

    stored_columns = [quoted(name) for name, _ in physical_columns(table.spec, Half.REALTIME)]
    epoch, segment = "_hy_replay_epoch", "_hy_replay_segment"
    ddl = f"{columns.CONNECTOR} string, {columns.TOPIC} string, {columns.EPOCH} int, {columns.PARTITION} int, "
    rows = [
        (key.connector, key.topic, piece.origin.epoch, key.partition, key.epoch, name) for key, piece, name in named
    ]
    names = table.bench.session.createDataFrame(rows, f"{ddl}{epoch} int, {segment} string")
    replayed_rows = found.decoded.where(quoted(KIND) == BROUGHT).join(F.broadcast(names), list(_KEY))
    replayed_rows = replayed_rows.withColumns({columns.EPOCH: F.col(epoch), columns.SEGMENT: F.col(segment)})
    marked = found.decoded.where(quoted(KIND) != BROUGHT)
    others = found.rejected.others.select(*stored_columns)
    frame = others.unionByName(marked.select(*stored_columns)).unionByName(replayed_rows.select(*stored_columns))
    return frame.repartition(columns.SEGMENT).sortWithinPartitions(columns.SEGMENT, columns.PARTITION, columns.OFFSET)


def _report(
    spec: TableSpec, tally: _Tally, dry_run: bool, segments: tuple[str, ...] = (), version: int | None = None
) -> ReplayReport:
    reasons = tuple({"reason": reason, "rows": rows} for reason, rows in tally.reasons[:REASONS_MAX])
    return ReplayReport(
        spec.name,
        tally.taken + tally.left,
        tally.replayed,
        tally.rows,
        tally.filtered,
        tally.left,
        reasons,
        segments,
        version,
        _sentence(spec, tally, dry_run),
        dry_run,
    )


def _sentence(spec: TableSpec, tally: _Tally, dry_run: bool) -> str:
    before = tally.taken + tally.left
    if not before:
        return f"Nothing to replay: '{spec.name}' has no rejected rows."
    why = f" (commonest reason: {tally.reasons[0][0].removesuffix('.')})" if tally.reasons else ""
    if not tally.taken:
        return f"Nothing to replay: none of {counted(before, 'rejected row')} of '{spec.name}' converts now{why}."
    parts = []
    if tally.replayed:
        would = "would be brought" if dry_run else "brought"
        what = f" as {counted(tally.rows, 'row')}" if tally.rows != tally.replayed else ""
        parts.append(
            f"{tally.replayed} of {counted(before, 'rejected row')} of '{spec.name}' now convert: {would}{what}"
        )
    if tally.filtered:
        of = "" if tally.replayed else f" of {counted(before, 'rejected row')} of '{spec.name}'"
        parts.append(f"the table's filter {'would drop' if dry_run else 'drops'} {tally.filtered}{of}")
    parts.append(f"{tally.left} {'would stay' if dry_run else 'stay'} rejected{why}")
    return f"{capitalized('; '.join(parts))}.{' Nothing was changed.' if dry_run else ''}"
