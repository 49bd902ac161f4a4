"""What rows of OFFLINE were rolled up by stays: a maximum of sums is neither."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hybrid.config.table_config import Aggregation, BucketConfig, MergeLevel
from hybrid.errors import SpecError


def refuse_rolled_otherwise(
    table: str, rolled: Mapping[str, Aggregation], tasks: Iterable[BucketConfig | None]
) -> None:
    """SpecError for a task that makes something else of a metric than rows of OFFLINE hold already.

    `rolled` is what the half's state says. Merges add up what moves have counted.
    """
    for task in tasks:
        for name, how in task.aggregations if task is not None else ():
            known = rolled.get(name, how)
            adds_up = isinstance(task, MergeLevel) and (known, how) == (Aggregation.COUNT, Aggregation.SUM)
            if how is not known and not adds_up:
                raise SpecError(
                    f"Metric '{name}' of table '{table}' cannot be rolled up with '{how}': rows of OFFLINE hold what "
                    f"'{known}' made of it. Nothing was changed.",
                    hint=f'Write "{name}.aggregationType": "{known}", and add a metric of another name for \'{how}\'.',
                )
