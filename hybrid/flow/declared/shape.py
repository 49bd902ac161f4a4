"""Checks of what a flow's function returns: a frame, and for an incremental flow one of independent rows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hybrid.errors import SpecError
from hybrid.flow.declared.model import Flow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PER_BATCH = {
    "Aggregate": "an aggregate (groupBy, count, sum)",
    "Deduplicate": "dropDuplicates",
    "Distinct": "distinct",
    "GlobalLimit": "limit",
    "Window": "a window function",
    "Sample": "sample",
}
_NODE = re.compile(r"^[\s:|+\-]*([A-Za-z]+)", re.MULTILINE)


def refuse_per_batch(flow: Flow, frame: DataFrame) -> None:
    """SpecError when a flow computes across rows of its stream, of which each micro-batch has only a part.

    A flow that joins its stream with another frame is allowed, because that frame may be computed in any way.
    """
    plan = str(frame._jdf.queryExecution().analyzed().toString())
    nodes = set(_NODE.findall(plan))
    if "Join" in nodes or "AsOfJoin" in nodes:
        return
    for node, words in _PER_BATCH.items():
        if node in nodes:
            raise SpecError(
                f"Flow '{flow.name}' computes {words} over a stream. It would be of each micro-batch by itself, so "
                "that the result hangs on how many files came at once.",
                hint="Append the rows as they are, and ask for it in a query; or use a once-flow.",
            )


def frame_of(flow: Flow, found: Any) -> DataFrame:
    """The result of a flow's function as a frame. SpecError when it is none."""
    from pyspark.sql import DataFrame

    from hybrid.flow.declared.sources import FileReader

    if isinstance(found, FileReader):
        found = found.load()
    if not isinstance(found, DataFrame):
        what = "nothing" if found is None else f"a {type(found).__name__}"
        raise SpecError(f"{flow.place}: flow '{flow.name}' returns {what}, not a DataFrame. Is a `return` missing?")
    return found
