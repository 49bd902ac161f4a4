"""A flow's query in SQL: Spark runs it, with its files bound to temporary views for each micro-batch."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hybrid.flow.declared.options import DeclaredFileSource
from hybrid.flow.declared.reader import METADATA
from hybrid.flow.declared.session import FlowSession, bound

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class FilesQuery:
    """`text` has a name in braces instead of each `read_files`; `views` maps it to its source. `start`: its offset."""

    text: str
    views: Mapping[str, DeclaredFileSource]
    session: FlowSession
    start: int

    @property
    def sources(self) -> list[DeclaredFileSource]:
        """The sources that it reads."""
        return list(self.views.values())

    def __call__(self) -> DataFrame:
        """The query's frame over the files of this run."""
        spark, text = self.session.start_spark(), self.text
        names = []
        try:
            for place, source in self.views.items():
                names.append(f"_hy_flow_{uuid.uuid4().hex}")
                bound("read_files").read(source).createOrReplaceTempView(names[-1])
                text = text.replace(place, names[-1])
            return spark.sql(text).drop(METADATA)
        finally:
            for name in names:
                spark.catalog.dropTempView(name)
