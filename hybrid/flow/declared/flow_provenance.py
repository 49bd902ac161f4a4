"""What flows have brought to OFFLINE, by the hidden columns of its rows; corrections of it by the lineage.

A replacement's rows no longer say which flow brought the rows they stand for. So a segment that was replaced goes with
a refresh when every row in it, as it was before, was brought by the flows that are refreshed; when others' rows were
among them, nobody can tell what would be left, and the refresh is refused. A segment stands for the one of its name,
whatever else the same act replaced; and for those that the act took away and put none in the place of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hybrid.errors import ConflictError
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.layout import quoted
from hybrid.lake.log import HalfSnapshot, lineage_acts, texts
from hybrid.table import columns
from hybrid.table.lineage import MERGE
from hybrid.table.upsert_order import REPLACEMENT_CONNECTOR

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class FlowProvenance:
    """`segments` hold rows of the `flows`; of those in `replaced` nothing stays, as a correction stands there.

    `flows` maps each to the refresh that takes its earlier rows away.
    """

    segments: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    flows: Mapping[str, int] = field(default_factory=dict)

    def kept(self, rows: DataFrame) -> DataFrame:
        """Those of the segments' rows that stay: other flows', and what the refresh itself has brought already."""
        segment, connector, epoch = (quoted(one) for one in (columns.SEGMENT, columns.CONNECTOR, columns.EPOCH))
        left = ~segment.isin(list(self.replaced))
        for flow, refresh in self.flows.items():
            left = left & ~((connector == flow) & (epoch < refresh))
        return rows.where(left)


def brought_by(bench: CommitContext, offline: HalfSnapshot, flows: Mapping[str, int]) -> FlowProvenance:
    """What these flows brought before a refresh to the OFFLINE half as it is now, called under its lock.

    ConflictError when a replacement stands over rows of theirs and of others.
    """
    rows = bench.spark.read.format("delta").load(str(offline.path))
    found = {(row[0], row[1]) for row in rows.select(columns.SEGMENT, columns.CONNECTOR).distinct().collect()}
    own = {segment for segment, connector in found if connector in flows}
    corrected = {segment for segment, connector in found if connector == REPLACEMENT_CONNECTOR}
    replaced = {name for name in corrected if _is_theirs(bench, offline, name, set(flows))}
    return FlowProvenance(tuple(sorted(own | replaced)), tuple(sorted(replaced)), dict(flows))


def _is_theirs(bench: CommitContext, offline: HalfSnapshot, segment: str, flows: set[str]) -> bool:
    """Whether a replaced segment stands for rows of these flows alone."""
    names, connectors, entry = {segment}, set[str](), None
    for version, act in lineage_acts(offline):
        to, before = texts(act.detail["segments_to"]), set(texts(act.detail["segments_from"]))
        if act.kind == MERGE or not names & set(to) or not before:  # merged rows still say who brought them
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
    """Who had brought the rows of segments at an old version. ConflictError when that is not kept any more."""
    from pyspark.errors import PySparkException

    try:
        then = bench.spark.read.format("delta").option("versionAsOf", version).load(str(offline.path))
        found = then.where(quoted(columns.SEGMENT).isin(segments)).select(columns.CONNECTOR).distinct().collect()
    except PySparkException as error:
        raise ConflictError(
            f"Segment '{segments[0]}' was replaced by '{entry}' so long ago that nobody can tell whose rows were in "
            "it: it cannot be refreshed. Nothing was changed.",
            hint="Load into a new table.",
        ) from error
    return {row[0] for row in found}
