"""The columns of files that were read already: Spark infers them from every line, and they are needed twice."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hybrid.flow.declared.listing import SourceFile
from hybrid.flow.declared.options import DeclaredFileSource

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_KEPT_MAX = 64


class InferredColumns:
    """The columns of the last files that a run of a flow file has inferred, for the threads of its flows.

    A new table gets the columns of its flows' first files, before the flows read these. A file that has changed
    meanwhile has another time or size, and is read again.
    """

    def __init__(self) -> None:
        self._last: deque[tuple[DeclaredFileSource, Sequence[SourceFile], StructType]] = deque(maxlen=_KEPT_MAX)

    def of(
        self, source: DeclaredFileSource, files: Sequence[SourceFile], infer: Callable[[], StructType]
    ) -> StructType:
        """The columns of a source's files."""
        for other, others, columns in list(self._last):
            if other == source and others == files:
                return columns
        inferred = infer()
        self._last.append((source, list(files), inferred))
        return inferred
