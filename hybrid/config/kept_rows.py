"""Refuses tasks and boundary modes on tables of which each row must be kept as it arrived."""

from __future__ import annotations

from hybrid.config.bucket_json import ROUNDING
from hybrid.config.compaction_json import COMPACTION_TASK
from hybrid.config.merge_json import MERGE_TASK
from hybrid.config.table_config import BoundaryMode, BucketConfig, Half, MergeType, TableSpec
from hybrid.config.table_halves import Halves
from hybrid.config.table_keys import BOUNDARY
from hybrid.config.upsert_json import MOVE_TASK, tasks_of
from hybrid.schema.document import Section, shown


def check_all_kept(spec: TableSpec, halves: Halves) -> None:
    """SpecError where a task would combine or change rows of a table whose rows must all be kept."""
    why = "would change what deletes leave: of equal rows they take away one each" if spec.nets_deletes else None
    if spec.folds:
        why = "would leave out or change rows that upsert folds when they are asked for, all rows of a key"
    if why is None:
        return
    if spec.move is not None:
        _check_keeps_rows(tasks_of(halves[Half.REALTIME]).section(MOVE_TASK), "", spec.move, why)
    for level in spec.merge_levels:
        _check_keeps_rows(tasks_of(halves[Half.OFFLINE]).section(MERGE_TASK), f"{level.name}.", level, why)
    if spec.folds and spec.compaction is not None:
        section = next(tasks_of(top) for top in halves.values() if COMPACTION_TASK in tasks_of(top).doc)
        message = "cannot run here: no row is superseded where all rows of a key are folded. Remove the task."
        section.fail(COMPACTION_TASK, message)


def check_arrivals_kept(spec: TableSpec, halves: Halves) -> None:
    """SpecError for boundary mode `pinot` on a table that combines the rows of a key in order of arrival.

    Pushed rows replace rows of the stream there, and arrive when they are pushed.
    """
    if not spec.folds or len(halves) < len(Half) or spec.first_boundary_mode is not BoundaryMode.PINOT:
        return
    why = (
        f"cannot be {BoundaryMode.PINOT} where rows of a key are folded: pushed rows would come in the place of those "
        "of the stream, and arrive at the push. Below what their key has reached by then they would be ignored."
    )
    customs = [top.section("metadata").section("customConfigs") for top in halves.values()]
    custom = next((custom_section for custom_section in customs if custom_section.has(BOUNDARY)), customs[0])
    hint = (
        f'Write "{BOUNDARY}": "{BoundaryMode.EXACT}", give the table a {MOVE_TASK}, or upsert FULL by one comparison '
        "column."
    )
    custom.fail(BOUNDARY, why, hint=hint)


def _check_keeps_rows(task: Section, prefix: str, config: BucketConfig, why: str) -> None:
    if config.merge_type is not MergeType.CONCAT:
        task.fail(f"{prefix}mergeType", f"'{config.merge_type}' {why}. Use concat.")
    if config.round_ms is not None:
        task.fail(f"{prefix}{ROUNDING}", f"{shown(task.doc[prefix + ROUNDING])} {why}. Remove the key.")
