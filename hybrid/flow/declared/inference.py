"""The columns of files that were read already: Spark infers them from every line, and they are needed twice.

One wrong value among numbers makes a column text, for good. Such columns are named.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from hybrid.flow.declared.listing import SourceFile
from hybrid.flow.declared.options import DeclaredFileSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_KEPT_MAX = 64
# So many rows are looked at for texts among numbers, and such a share of numbers makes the others doubtful.
_SAMPLE_ROWS, _NUMBERS_SHARE = 10_000, 0.9


class Inferred(NamedTuple):
    """The columns of files, and sentences about those that some few values made text."""

    columns: StructType
    doubts: tuple[str, ...] = ()


class InferredColumns:
    """The columns of the last files that a run of a flow file has inferred, for the threads of its flows.

    A new table gets the columns of its flows' first files, before the flows read these. A file that has changed
    meanwhile has another time or size, and is read again.
    """

    def __init__(self) -> None:
        self._last: deque[tuple[DeclaredFileSource, Sequence[SourceFile], Inferred]] = deque(maxlen=_KEPT_MAX)

    def of(self, source: DeclaredFileSource, files: Sequence[SourceFile], infer: Callable[[], Inferred]) -> Inferred:
        """The columns of a source's files."""
        for other, others, inferred in list(self._last):
            if other == source and others == files:
                return inferred
        inferred = infer()
        self._last.append((source, list(files), inferred))
        return inferred


def doubts_about(rows: DataFrame, columns: Sequence[str]) -> tuple[str, ...]:
    """Sentences about text columns whose values are numbers but for a few; `rows` have a column `file` beside them.

    The first rows are looked at. A column with numbers only is no doubt: its texts were quoted.
    """
    from pyspark.sql import functions as F

    from hybrid.lake.layout import quoted

    if not columns:
        return ()
    counts = []
    for column in columns:
        text = quoted(column)
        other = text.isNotNull() & text.try_cast("double").isNull()
        first = F.first(F.when(other, F.struct(F.substring(text, 1, 40), "file")), ignorenulls=True)
        counts += [F.count(text), F.count_if(other), first]
    found = rows.limit(_SAMPLE_ROWS).agg(*counts).first() or ()
    doubts = []
    for column, values, others, first in zip(columns, found[::3], found[1::3], found[2::3], strict=True):
        if first is not None and others <= (1 - _NUMBERS_SHARE) * values:
            are = "is" if others == 1 else "are"
            doubts.append(
                f"column '{column}' is STRING: {others:,} of its first {values:,} values {are} no number, e.g. "
                f"'{first[0]}' in {first[1]}. With schemaHints '{column} DOUBLE' such rows are rejected."
            )
    return tuple(doubts)
