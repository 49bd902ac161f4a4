"""The files that a flow's function reads: all of a batch source, or the next new ones of a stream."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hybrid.errors import DataError, NotFoundError, SpecError
from hybrid.flow.declared.convert import union_all
from hybrid.flow.declared.doubtful_texts import doubts_about
from hybrid.flow.declared.inference import InferredColumns
from hybrid.flow.declared.listing import SourceFile, list_files, next_files
from hybrid.flow.declared.options import DeclaredFileSource
from hybrid.flow.declared.processed_files import changed_since
from hybrid.flow.declared.read import Loaded, NoColumnsError, load_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


_PLACE = re.compile(r"_c[0-9]+", re.IGNORECASE)
_SHOWN_MAX = 3


class NothingNew(BaseException):
    """Ends a flow's function when its stream has no new file. It is no Exception, so that no flow catches it."""

    def __init__(self, source: DeclaredFileSource, listed: int, changed: Sequence[str]) -> None:
        super().__init__(source.path)
        self.source, self.listed, self.changed = source, listed, tuple(changed)


@dataclass
class Bound:
    """The files that a call of a flow's function has loaded."""

    flow: str
    spark: SparkSession
    inferred: InferredColumns = field(default_factory=InferredColumns)
    files: list[SourceFile] = field(default_factory=list)
    rejected_frames: list[DataFrame] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    # What was read, and by which columns.
    reads: list[tuple[DeclaredFileSource, Sequence[SourceFile], StructType]] = field(default_factory=list)
    left: int = 0
    # A source of CSV that says neither whether there is a header nor which columns there are.
    unnamed: DeclaredFileSource | None = None

    @property
    def rejected(self) -> DataFrame | None:
        """The rows that were rejected while files were read."""
        return union_all(self.rejected_frames) if self.rejected_frames else None

    def doubts(self, texts: Iterable[str]) -> list[str]:
        """Sentences about new text columns of the table whose values in the files are numbers but for a few."""
        names = {name.lower() for name in texts}
        return [doubt for read in self.reads for doubt in doubts_about(self.spark, *read, names)] if names else []

    def _loaded(self, source: DeclaredFileSource, files: Sequence[SourceFile], known: StructType | None) -> Loaded:
        self.warnings += source.warnings
        loaded = load_files(self.spark, source, files, known, self.inferred)
        self.warnings += loaded.warnings
        self.reads.append((source, files, loaded.schema))
        if source.format == "csv" and source.schema is None and "header" not in source.reader:
            self.unnamed = source
        if source.strict and loaded.rejected is not None:
            _refuse_any(loaded.rejected)
        return loaded


def refuse_unnamed(bound: Bound, names: Iterable[str]) -> None:
    """SpecError where a table would get columns `_c0`, `_c1`: the option `header` of a CSV source is missing.

    Whoever means these names says that there is no header.
    """
    places = [name for name in names if _PLACE.fullmatch(name)]
    if bound.unnamed is not None and places:
        raise SpecError(
            f"{bound.unnamed.path}: nothing says whether the first line of these CSV files names their columns, which "
            f"would be called {', '.join(places[:_SHOWN_MAX])}. Nothing was changed.",
            hint="Set the option header to true if it does; to false, best with a schema, if it is a row.",
        )


@dataclass
class OnceBinding(Bound):
    """All files of every source, for a once-flow."""

    def read(self, source: DeclaredFileSource) -> DataFrame:
        """The rows of a batch source. SpecError for a stream, NotFoundError without files."""
        if source.streaming:
            raise SpecError(
                f"Flow '{self.flow}' is once and reads a stream: what comes after its run would never be read.",
                hint="Read a batch (spark.read, read_files without STREAM), or leave `once` out.",
            )
        files = list_files(source)
        if not files:
            raise NotFoundError(f"Flow '{self.flow}': there is no file at '{source.path}'. It has not run.")
        loaded = self._loaded(source, files, None)
        self.files += files
        if loaded.rejected is not None:
            self.rejected_frames.append(loaded.rejected)
        return loaded.good


@dataclass
class StreamBinding(Bound):
    """The next new files of the one stream of an incremental flow; `ledger` holds the files that it has read."""

    ledger: Mapping[str, int] = field(default_factory=dict)
    known: StructType | None = None
    schema: StructType | None = None
    source: DeclaredFileSource | None = None

    def read(self, source: DeclaredFileSource) -> DataFrame:
        """The rows of the stream's next micro-batch, or all rows of a batch source that the stream joins."""
        return self._next(source) if source.streaming else self._whole(source)

    def _next(self, source: DeclaredFileSource) -> DataFrame:
        if self.source is not None:
            raise SpecError(
                f"Flow '{self.flow}' reads two streams, '{self.source.path}' and '{source.path}'.",
                hint="Write an append flow for each; both may have the same target.",
            )
        self.source = source
        listed = list_files(source)
        new = [file for file in listed if file.path not in self.ledger]
        changed = changed_since(listed, self.ledger)
        if not new:
            raise NothingNew(source, len(listed), changed)
        if changed:
            self.warnings.append(changed_words(changed))
        self.files = next_files(source, new)
        loaded = self._first_columns(source, new)
        self.left = len(new) - len(self.files)
        self.schema = loaded.schema
        if loaded.rejected is not None:
            self.rejected_frames.append(loaded.rejected)
        return loaded.good

    def _first_columns(self, source: DeclaredFileSource, new: Sequence[SourceFile]) -> Loaded:
        """The micro-batch. While its files reveal no columns, more files are added to it."""
        while True:
            try:
                return self._loaded(source, self.files, self.known)
            except NoColumnsError:
                if len(self.files) == len(new):
                    raise
                self.files = list(new[: 2 * len(self.files)])

    def _whole(self, source: DeclaredFileSource) -> DataFrame:
        files = list_files(source)
        if not files:
            raise NotFoundError(f"Flow '{self.flow}': there is no file at '{source.path}'.")
        loaded = self._loaded(source, files, None)
        if loaded.rejected is not None:
            _refuse_any(loaded.rejected)  # not rows of the flow's target: nowhere to keep them
        return loaded.good


def changed_words(paths: Sequence[str]) -> str:
    """The warning of files that have changed."""
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{paths[0]}{more}: changed after it was read, and not read again. --full-refresh reads everything again."


def _refuse_any(rejected: DataFrame) -> None:
    """DataError when anything was rejected."""
    first = rejected.limit(1).collect()
    if first:
        text = bytes(first[0][1] or b"").decode("utf-8", "replace")[:100]
        raise DataError(f"A line cannot be read: {first[0][0]}: {text}")
