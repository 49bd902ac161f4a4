"""The OFFLINE rows that flows brought, found by hidden columns, and through the lineage the corrected ones.

Rows of a replacement do not record which flow brought the rows that they replaced. A refresh removes a replaced
segment when the refreshed flows brought every row that it held before. When it also held rows of others, the remaining
rows cannot be determined, and the refresh is refused.

A segment replaces the old one of its name, whatever else the same commit replaced. It also replaces all old segments
that the commit removed without a successor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hybrid.errors import ConflictError
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.half_frames import refused_when_gone, rows_in, stored_rows
from hybrid.lake.layout import quoted
from hybrid.lake.log import HalfSnapshot, lineage_acts, open_half, texts
from hybrid.table import columns
from hybrid.table.lineage import MERGE
from hybrid.table.upsert_order import REPLACEMENT_CONNECTOR

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class FlowProvenance:
    """Rows of flows that a refresh removes: `segments` hold rows of the `flows`; `replaced` are removed completely.

    `replaced` are corrections. `flows` maps each flow to the refresh that removes its earlier rows.
    """

    segments: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    flows: Mapping[str, int] = field(default_factory=dict)

    def kept(self, rows: DataFrame) -> DataFrame:
        """The rows of the segments that stay: rows of other flows, and rows that the refresh itself has brought."""
        segment, connector, epoch = (quoted(name) for name in (columns.SEGMENT, columns.CONNECTOR, columns.EPOCH))
        stays = ~segment.isin(list(self.replaced))
        for flow, refresh in self.flows.items():
            stays = stays & ~((connector == flow) & (epoch < refresh))
        return rows.where(stays)


def brought_by(bench: CommitContext, offline: HalfSnapshot, flows: Mapping[str, int]) -> FlowProvenance:
    """The OFFLINE rows that these flows brought before a refresh. Call it under the half's lock.

    ConflictError when a replacement covers rows of theirs and of others.
    """
    rows = stored_rows(bench, offline)
    pairs = {(row[0], row[1]) for row in rows.select(columns.SEGMENT, columns.CONNECTOR).distinct().collect()}
    own = {segment for segment, connector in pairs if connector in flows}
    corrected = {segment for segment, connector in pairs if connector == REPLACEMENT_CONNECTOR}
    replaced = {name for name in corrected if _is_theirs(bench, offline, name, set(flows))}
    return FlowProvenance(tuple(sorted(own | replaced)), tuple(sorted(replaced)), dict(flows))


def _is_theirs(bench: CommitContext, offline: HalfSnapshot, segment: str, flows: set[str]) -> bool:
    """Whether a replaced segment covers rows of these flows only."""
    names, connectors, entry = {segment}, set[str](), None
    for version, act in lineage_acts(offline):
        to, before = texts(act.detail["segments_to"]), set(texts(act.detail["segments_from"]))
        if act.kind == MERGE or not names & set(to) or not before:  # merged rows keep their flow's name
            continue
        entry = entry or act.id
        stood_for = (names & set(to) & before) | (before - set(to))
        if not stood_for:
            continue
        old = _connectors_then(bench, offline, version - 1, sorted(stood_for), entry)
        connectors |= old - {REPLACEMENT_CONNECTOR}
        names |= stood_for
    if not connectors & flows:
        return False
    if connectors <= flows:
        return True
    others = ", ".join(sorted(connectors - flows))
    table = offline.path.parent.name
    raise ConflictError(
        f"Segment '{segment}' was replaced by '{entry}', and rows of {others} were in it besides those to be "
        "refreshed: what stays cannot be told apart. Nothing was changed.",
        hint=f"Refresh all of them together, or revert first: hybrid replacement revert {table} {entry}",
    )


def _connectors_then(
    bench: CommitContext, offline: HalfSnapshot, version: int, segments: list[str], entry: str
) -> set[str]:
    """The connectors of segments' rows at an old version. ConflictError when that is no longer retained."""
    refusal = ConflictError(
        f"Segment '{segments[0]}' was replaced by '{entry}' so long ago that nobody can tell whose rows were in it: it "
        "cannot be refreshed. Nothing was changed.",
        hint="Load into a new table.",
    )
    with refused_when_gone(refusal):
        then = rows_in(bench, open_half(offline.path, version), segments)
        return {row[0] for row in then.select(columns.CONNECTOR).distinct().collect()}
