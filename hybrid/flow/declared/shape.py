"""What a flow's function returned: a frame, and of an incremental flow one whose rows do not hang on each other."""

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
    """SpecError when a flow computes over the rows of its stream as if they were all there.

    A flow that joins its stream with another frame is let through: that one may be computed in any way.
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
    """What a flow's function returned, as a frame. SpecError when it is none."""
    from pyspark.sql import DataFrame

    from hybrid.flow.declared.sources import FileReader

    if isinstance(found, FileReader):
        found = found.load()
    if not isinstance(found, DataFrame):
        what = "nothing" if found is None else f"a {type(found).__name__}"
        raise SpecError(f"{flow.place}: flow '{flow.name}' returns {what}, not a DataFrame. Is a `return` missing?")
    return found
