"""The sink of a statement whose rows are written in a format to an output."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hybrid.files.results.output_file import OutputStream
from hybrid.files.results.result_format import ResultFormat, distinct_names
from hybrid.progress import Progress
from hybrid.runtime.byte_sizes import size_text
from hybrid.runtime.sentence_repr import shown_as_sentence

if TYPE_CHECKING:
    import pyarrow as pa

    from hybrid.files.results.result_writers import ResultWriter

REVISION_KEY = b"hybrid.revision"
_LABEL = "Writing rows"


@shown_as_sentence
@dataclass(frozen=True)
class ExportReport:
    """What was written: where, in which format, how much, in which time, and from which revision of the tables."""

    path: str
    format: str
    rows: int
    bytes: int
    seconds: float
    revision: str
    warnings: Sequence[str] = ()

    @property
    def sentence(self) -> str:
        """The report in one sentence."""
        rows = f"{self.rows:,} {'row' if self.rows == 1 else 'rows'}"
        return f"Wrote {rows} ({size_text(self.bytes)}) to {self.path} in {self.seconds:.1f} s."


class ResultSink:
    """Writes the rows of a statement to an output. In Parquet and Arrow the file names the revision it was read from.

    A repeated column name gets a number. `revision` and `warnings` are those of the rows received last.
    """

    def __init__(self, output: OutputStream, fmt: ResultFormat, progress: Progress) -> None:
        self._output, self._format, self._progress = output, fmt, progress
        self._started = time.monotonic()
        self._writer: ResultWriter | None = None
        self._schema: pa.Schema | None = None
        self._rows, self.revision, self.warnings = 0, "", list[str]()

    @property
    def can_restart(self) -> bool:
        """Whether rows can be discarded."""
        return self._output.can_restart

    def begin(self, schema: pa.Schema, revision: str, warnings: Sequence[str]) -> None:
        """Receives the columns. ConflictError when rows were sent that cannot be taken back."""
        from hybrid.files.results.result_writers import open_writer

        if self._writer is not None:
            self._writer.abandon()
            self._output.restart()
        named = [field.with_name(name) for field, name in zip(schema, distinct_names(schema.names), strict=True)]
        self._schema = schema_of(named, revision)
        self._rows, self.revision, self.warnings = 0, revision, list(warnings)
        self._writer = open_writer(self._format, self._output, self._schema, seekable=self._output.can_restart)

    def take(self, batch: pa.RecordBatch) -> None:
        """Receives some rows."""
        assert self._writer is not None and self._schema is not None
        self._writer.write(type(batch).from_arrays(batch.columns, schema=self._schema))
        self._rows += batch.num_rows
        self._progress.step(_LABEL, self._rows, None)

    def complete(self) -> ExportReport:
        """Completes the output."""
        assert self._writer is not None
        self._writer.close()
        self._output.complete()
        seconds = time.monotonic() - self._started
        name, count = self._output.name, self._output.bytes
        return ExportReport(name, self._format.value, self._rows, count, seconds, self.revision, self.warnings)

    def abandon(self, error: Mapping[str, object] | None = None) -> None:
        """Leaves the output incomplete: a file is removed. `error` says why to readers that can learn it."""
        if self._writer is not None:
            self._writer.abandon(error)
        self._output.discard()


def schema_of(fields: Sequence[pa.Field], revision: str) -> pa.Schema:
    """A schema that names the revision."""
    import pyarrow as pa

    return pa.schema(list(fields), {REVISION_KEY: revision.encode()})


@contextmanager
def abandoned_on_error(sink: ResultSink) -> Iterator[ResultSink]:
    """Removes what was written when the block fails, also when it is interrupted."""
    try:
        yield sink
    except BaseException:
        sink.abandon()
        raise
