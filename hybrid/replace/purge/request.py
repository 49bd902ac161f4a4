"""What a purge is asked to remove, and the table that it is asked of."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config.table_config import TableSpec
from hybrid.errors import SpecError
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.defaults import filled
from hybrid.lake.layout import TableLayout
from hybrid.table.correction_window import rounded_to
from hybrid.table.state import OfflineState

if TYPE_CHECKING:
    from pyspark.sql import Column


@dataclass(frozen=True)
class PurgeRequest:
    """`text` is the condition as it was written, `where` as Spark's SQL. `reads` names its columns; `values` the
    constants, as texts, that it holds columns equal to. `id` names the purge. `takes_markers`: everything that was sent
    has arrived, so delete markers are not needed for it. `undecided`: rejected messages go of which cannot be told
    whether they match.
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

    @property
    def digest(self) -> str:
        """What stands for the condition in records: it names what was to be forgotten."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True)
class PurgeScope:
    """The table of a purge. `folder` is for what is staged on the way."""

    bench: CommitContext
    spec: TableSpec
    layout: TableLayout
    asked: PurgeRequest
    folder: Path

    def matches(self) -> Column:
        """True for stored rows of the table that match, their columns as `filled` has them; never null."""
        from pyspark.sql import functions as F

        return F.coalesce(F.expr(self.asked.where), F.lit(False))

    def filled(self) -> dict[str, Column]:
        """The columns that the condition reads, with the default for what a row does not have, as queries see it."""
        return filled(self.spec, self.asked.reads)


def require_purgeable(spec: TableSpec, offline: OfflineState | None, reads: Collection[str]) -> None:
    """SpecError where what is shown is counted rather than read: to remove a hidden row would show another.

    Also for a condition that `reads` what rows do not have any more when they were rolled up or rounded: by the tasks
    of now, and by those that committed the rows of `offline`, the state of that half.
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
