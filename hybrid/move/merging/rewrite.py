"""Replaces segments of OFFLINE by others with the same rows, or fewer. Each group is one commit.

The files of several groups are written at once, beside the half. Then each group is committed separately.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config.table_config import BucketConfig, Half, MergeType
from hybrid.errors import DataError, OvertakenError
from hybrid.lake.commit import FileAct, Written, commit_files
from hybrid.lake.commit_context import new_act_id
from hybrid.lake.log import HalfSnapshot, open_half, segments_named_by
from hybrid.lake.log_entries import acts_between
from hybrid.lake.table_context import TableContext
from hybrid.move.merging.plan import Group
from hybrid.move.merging.report import Merged, left_out
from hybrid.move.rollup import sums_that_fit
from hybrid.move.task_splits import TaskSplit, borders, names_of, rows_per_task, stretches, task_splits_of
from hybrid.move.write import put_files, write_files, written_columns
from hybrid.progress import counted
from hybrid.table import columns
from hybrid.table.lineage import MERGE, Lineage, with_entry
from hybrid.table.state import Act, next_act

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Rewrite:
    """The common parameters of a batch's groups, planned on `base` with its `lineage` operations, in any order.

    `source` names the task, `how` describes the change in the entry's sentence. `holds` returns whether the plan is
    still valid for a later version; it is called under the lock. `change` is the requested change in the lineage entry.
    """

    table: TableContext
    config: BucketConfig
    base: HalfSnapshot
    lineage: Sequence[Act]
    source: str
    how: str
    holds: Callable[[HalfSnapshot], bool]
    change: str | None = None

    def stage(self, groups: Sequence[Group], rows: DataFrame, folder: Path) -> list[TaskSplit]:
        """Write the final rows of some groups to files in a folder.

        Raises DataError when a sum does not fit its column.
        """
        names, config = {name for group in groups for name in group.names}, self.config
        lying = stretches([file for file in self.base.files if file.segment in names], columns.TIME)
        counts = {group.start: group.rows for group in groups}
        end_ms = max(counts) + config.bucket_ms
        cuts = borders(counts, config.bucket_ms, lying, end_ms, rows_per_task(config.max_records_per_segment))
        with sums_that_fit(self.table.spec):
            files = write_files(self.table.bench, rows, self.table.spec, config, folder, cuts)
        return task_splits_of(files, config.bucket_ms, config.max_records_per_segment)

    def commit(self, group: Group, parts: Sequence[TaskSplit], folder: Path) -> Merged:
        """Commit the staged parts of a group in place of its segments.

        Raises OvertakenError when these have changed, and DataError when rows are missing; they stay unchanged then.
        """
        written, half = sum(part.rows for part in parts), self.table.layout.half(Half.OFFLINE)
        with self.table.lock(Half.OFFLINE):
            current = open_half(half)
            newer = acts_between(half, self.base.version, current.version)
            if newer is None or not self._is_as_planned(group, current) or not self.holds(current):
                raise OvertakenError(f"Another operation changed segments of OFFLINE of '{self.table.name}' first.")
            if not group.allows(written):
                raise self._lacking(group, written)
            taken = {file.segment for file in current.files} | self._names | segments_named_by(newer)
            names = tuple(names_of(self.table.spec, self.config, parts, {group.start: group.times}, taken))
            act_id = new_act_id(MERGE)
            entry = Lineage(
                segments_from=group.names,
                segments_to=names,
                version_before=current.version,
                rows_before=group.rows,
                rows_after=written,
                added=0,
                removed=group.rows - written,
                changed=0,
                result=self._sentence(group, names, written),
                source=self.source,
                change=self.change,
                previous=current.offline.last_lineage,
            )
            act = next_act(current.offline, act_id, "merge", self.table.bench.now_iso(), entry.to_json())
            state = with_entry(current.offline.with_task(self.config), act, current.version)

            def put() -> Written:
                return Written(put_files(folder, half, dict(zip(names, parts, strict=True)), act_id), state)

            gone = {name: self.base.files_of(name) for name in group.names}
            version = commit_files(
                self.table.bench.file_workers,
                FileAct(half, "merge", act_id, written_columns(self.table.spec), gone),
                put,
            )
        return Merged(self.source, group.start, group.names, names, group.rows, written, act_id, version)

    def _is_as_planned(self, group: Group, current: HalfSnapshot) -> bool:
        if (self.base.table_id, self.base.columns) != (current.table_id, current.columns):
            return False
        return all(current.files_of(name) == self.base.files_of(name) for name in group.names)

    def _lacking(self, group: Group, written: int) -> DataError:
        return DataError(
            f"Of {group.rows} rows in {counted(len(group.segments), 'segment')} of '{self.table.name}' a merge "
            f"({self.how}) wrote {written}. These segments stay as they are.",
            hint="hybrid doctor",
        )

    def _sentence(self, group: Group, names: Sequence[str], written: int) -> str:
        what = f"Merged {counted(len(group.segments), 'segment')} with {counted(group.rows, 'row')} into {len(names)}"
        gone = left_out(group.rows, written, rolled_up=self.config.merge_type is MergeType.ROLLUP)
        return f"{what} ({self.how}){gone}."

    @cached_property
    def _names(self) -> set[str]:
        """Names that lineage entries removed or added: a revert may bring any of them back."""
        return segments_named_by(self.lineage)
