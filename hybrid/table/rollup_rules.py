"""Rules for rollups: a metric keeps the aggregation of its stored rows, because a maximum of sums is neither."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hybrid.config.table_config import Aggregation, BucketConfig, MergeLevel
from hybrid.errors import SpecError


def refuse_rolled_otherwise(
    table: str, rolled: Mapping[str, Aggregation], tasks: Iterable[BucketConfig | None]
) -> None:
    """SpecError for a task that aggregates a metric otherwise than the rows in OFFLINE were.

    `rolled` are the aggregations in the half's state. A merge may sum up the counts that moves have written.
    """
    for task in tasks:
        for name, how in task.aggregations if task is not None else ():
            stored = rolled.get(name, how)
            adds_up = isinstance(task, MergeLevel) and (stored, how) == (Aggregation.COUNT, Aggregation.SUM)
            if how is not stored and not adds_up:
                raise SpecError(
                    f"Metric '{name}' of table '{table}' cannot be rolled up with '{how}': rows of OFFLINE hold what "
                    f"'{stored}' made of it. Nothing was changed.",
                    hint=f'Write "{name}.aggregationType": "{stored}", and add a metric of another name for \'{how}\'.',
                )
