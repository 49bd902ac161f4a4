"""The request of a purge, and the table that it applies to."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config.table_config import TableSpec
from hybrid.errors import SpecError
from hybrid.lake.defaults import filled
from hybrid.lake.table_context import TableContext
from hybrid.sql.redaction import plain_digest
from hybrid.table.correction_window import rounded_to
from hybrid.table.state import OfflineState

if TYPE_CHECKING:
    from pyspark.sql import Column


@dataclass(frozen=True)
class PurgeRequest:
    """The request of a purge, named by `id`. `text` is the condition as written, `where` as Spark SQL.

    `reads` names its columns; `values` are the constants, as texts, that it compares columns with for equality.
    `takes_markers` says that everything that was sent has arrived, so its delete markers are not needed. `undecided`
    also removes rejected messages for which the match cannot be decided. `takes_realtime` also removes rows that
    queries show from REALTIME, where no move could take them to be deleted. `locates` reports the offsets of matching
    messages. `own_digest` is the digest to record, instead of that of `text`.
    """

    id: str
    text: str
    where: str
    reads: tuple[str, ...]
    values: tuple[str, ...]
    takes_markers: bool = True
    undecided: bool = False
    reason: str | None = None
    user: str | None = None
    dry_run: bool = False
    takes_realtime: bool = False
    locates: bool = False
    own_digest: str | None = None

    @property
    def digest(self) -> str:
        """The digest that records hold instead of the condition, which names what must be forgotten."""
        return self.own_digest or plain_digest(self.text)


@dataclass(frozen=True)
class PurgeScope:
    """The table and the request of a purge. `folder` holds intermediate staged files."""

    table: TableContext
    asked: PurgeRequest
    folder: Path

    def matches(self) -> Column:
        """True for matching rows of the table, whose columns are as in `filled`; never null."""
        from pyspark.sql import functions as F

        return F.coalesce(F.expr(self.asked.where), F.lit(False))

    def filled(self) -> dict[str, Column]:
        """The columns that the condition reads. Where a row lacks one, its default, as queries show it."""
        return filled(self.table.spec, self.asked.reads)


def require_realtime_erasable(spec: TableSpec, reads: Collection[str]) -> None:
    """SpecError where rows that REALTIME shows cannot go by this condition: an older version would show again."""
    if spec.upsert is not None and not {*reads} <= {*spec.primary_key}:
        raise SpecError(
            f"Rows of '{spec.name}' cannot move to OFFLINE, so they are removed from REALTIME, by whole keys: a "
            f"condition may read {', '.join(spec.primary_key)} only.",
            hint="Find the keys by a query, and name the rows by them.",
        )


def require_purgeable(spec: TableSpec, offline: OfflineState | None, reads: Collection[str]) -> None:
    """SpecError when visible rows are netted counts: removing a hidden row would show another.

    Also when the condition `reads` columns that OFFLINE rolls up or rounds. This holds for the present tasks and for
    those of the past, whose effects the half's state `offline` records.
    """
    if spec.nets_deletes:
        raise SpecError(
            f"Table '{spec.name}' has no primary key, and each delete takes an equal row away: a row "
            "that was removed would no longer be taken away by its delete.",
            hint="hybrid table drop TABLE --purge removes all of it.",
        )
    tasks = [task for task in (spec.move, *spec.merge_levels) if task is not None]
    rolled = offline.rolled if offline is not None else {}
    combined = {*rolled, *(name for task in tasks for name, _ in task.aggregations)}
    step_ms = rounded_to(spec, offline.boundary) if offline is not None else 1
    rounded = {spec.time_column} if step_ms > 1 else set()
    for name in sorted({*reads} & {*combined, *rounded}):
        done = "rolled up" if name in combined else "rounded"
        raise SpecError(
            f"'{name}' of table '{spec.name}' is {done} in OFFLINE: a row that matches may be a part of one that does "
            "not, and would stay.",
            hint="Name the rows by dimensions.",
        )
