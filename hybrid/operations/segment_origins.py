"""The origins of a segment's rows: the commits that wrote to it, read from the half's log without a JVM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hybrid.lake.log import HalfSnapshot, texts
from hybrid.lake.log_entries import Commit, DataFile, commits_to
from hybrid.runtime.sentence_repr import shown_as
from hybrid.table.columns import OFFSET

# Operations whose rows come from Kafka and carry its offsets. The offsets of others number rows of files.
_FROM_KAFKA = frozenset({"ingest", "move", "replay"})


@shown_as("{0.kind} {0.act}, {0.rows} rows")
@dataclass(frozen=True)
class Origin:
    """A commit that wrote `rows` rows to a segment as `version`. `act` is None for a foreign tool.

    `segments_from` are the segments that it replaced; `offsets` is [first, next) over all partitions; `inputs`,
    `change`, `reason` and `user` are a correction's.
    """

    act: str | None
    kind: str
    at: str | None
    version: int
    rows: int
    segments_from: tuple[str, ...] = ()
    offsets: tuple[int, int] | None = None
    inputs: tuple[Mapping[str, object], ...] = ()
    change: str | None = None
    reason: str | None = None
    user: str | None = None


def origins_of(half: HalfSnapshot, segment: str) -> list[Origin]:
    """The origins of a segment, newest first, as far back as the log reaches."""
    return [_origin(commit, segment) for commit in commits_to(half.path, half.version, segment)]


def _origin(commit: Commit, segment: str) -> Origin:
    files = [file for file in commit.added if file.segment == segment]
    rows = sum(file.rows for file in files)
    if commit.state is None:
        return Origin(None, "foreign", None, commit.version, rows)
    act = commit.state.act
    detail: Mapping[str, Any] = act.detail
    return Origin(
        act=act.id,
        kind=act.kind,
        at=act.at,
        version=commit.version,
        rows=rows,
        segments_from=tuple(texts(detail.get("segments_from"))),
        offsets=_offsets(files) if act.kind in _FROM_KAFKA else None,
        inputs=tuple(detail.get("inputs") or ()),
        change=detail.get("change"),
        reason=detail.get("reason"),
        user=detail.get("user"),
    )


def _offsets(files: Sequence[DataFile]) -> tuple[int, int] | None:
    first = [low for file in files if isinstance(low := file.low.get(OFFSET), int)]
    last = [high for file in files if isinstance(high := file.high.get(OFFSET), int)]
    return (min(first), max(last) + 1) if first and last else None
