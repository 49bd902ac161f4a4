"""Files as a source of history: one, those of a folder, or those that a pattern names; JSON, CSV or Parquet.

After Feldera's `file_input` (https://docs.feldera.com/connectors/sources/file). The files that are there when the load
begins are pinned with their sizes and digests: one that has changed since stops the load that goes on.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid.errors import DataError, NotFoundError
from hybrid.files.inputs import DataFormat, InputFile, inspect
from hybrid.files.reading import read_slice
from hybrid.files.records import Slice
from hybrid.flow.connectors.convert import Rows, stage, staged_ddl
from hybrid.flow.connectors.source import Piece, Staged
from hybrid.spec import connectors as words
from hybrid.spec.connector_stream import csv_format
from hybrid.spec.csvformat import CsvFormat
from hybrid.spec.problem import Problem
from hybrid.spec.table_config import MessageFormat, TableSpec

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_TASKS_PER_CORE = 2
_NS_PER_MS = 1_000_000


class FileSource:
    """Some files, in the order of their paths."""

    def __init__(self, files: Sequence[InputFile], form: words.Format | None, spec: TableSpec) -> None:
        changes = isinstance(form, words.JsonFormat) and form.update_format is words.UpdateFormat.INSERT_DELETE
        self._message = MessageFormat.CHANGE if changes else MessageFormat.RECORD
        self._files, self._csv, self._form = files, _csv_format(form, spec), str(form)

    @property
    def pinned(self) -> Mapping[str, object]:
        """See `Source`."""
        return {"files": [file.to_json() for file in self._files], "form": self._form}

    @property
    def is_last(self) -> bool:
        """See `Source`."""
        return True

    @property
    def files(self) -> Sequence[InputFile]:
        """The files."""
        return self._files

    @property
    def pieces(self) -> Sequence[Piece]:
        """See `Source`: the files."""
        return [Piece(str(file.path), None, file.bytes) for file in self._files]

    def check(self, spec: TableSpec, connector: str) -> None:
        """See `Source`: records of files are looked at one by one."""

    def highest_offsets(self, spark: SparkSession) -> dict[str, int] | None:
        """See `Source`: files tell none."""
        return None

    def stage(self, spark: SparkSession, spec: TableSpec, connector: str, numbers: Sequence[int], to: Path) -> Staged:
        """See `Source`."""
        slices = [(number, piece) for number in numbers for piece in self._files[number].slices]
        tasks = max(1, min(len(slices), _TASKS_PER_CORE * spark.sparkContext.defaultParallelism))
        rows = Rows(spec, connector, message=self._message)
        changed_ms = {number: self._files[number].modified_ns // _NS_PER_MS for number in numbers}
        worker = _worker(rows, slices, self._csv, changed_ms)
        frame = spark.range(0, len(slices), 1, tasks).mapInArrow(worker, staged_ddl(spec))
        found = stage(frame, spec, connector, self.pieces, to)
        for number in numbers:
            self._files[number].check_unchanged()
        return found


def open_files(
    config: words.FileInput, form: words.Format | None, spec: TableSpec, pinned: Mapping[str, Any] | None
) -> FileSource:
    """The files of a connector; of a load that goes on those that it began with. NotFoundError without any."""
    paths = [Path(one["path"]) for one in pinned["files"]] if pinned is not None else _listed(config.path)
    source = FileSource([inspect(path, _data_format(form)) for path in paths], form, spec)
    if pinned is not None and source.pinned != pinned:
        known = {one["path"]: one for one in pinned["files"]}
        changed = [str(file.path) for file in source.files if known.get(str(file.path)) != file.to_json()]
        raise DataError(
            f"{', '.join(changed) or 'The format'} is not what the load began with: it has changed since. "
            "Nothing more was loaded.",
            hint="Put the old one back, or load into a new table.",
        )
    return source


def _listed(path: str) -> list[Path]:
    place = Path(path).expanduser()
    if place.is_dir():
        found = [one for one in sorted(place.rglob("*")) if one.is_file() and not one.name.startswith((".", "_"))]
    elif place.is_file():
        found = [place]
    else:
        found = [Path(one) for one in sorted(glob.glob(str(place), recursive=True)) if Path(one).is_file()]
    if not found:
        raise NotFoundError(
            f"There is no file at {path}.", hint="Set another: --set /connectors/NAME/transport/config/path=PATH"
        )
    return [one.absolute() for one in found]


def _data_format(form: words.Format | None) -> DataFormat:
    if isinstance(form, words.CsvFormat):
        return DataFormat.CSV
    return DataFormat.PARQUET if isinstance(form, words.ParquetFormat) else DataFormat.JSON


def _csv_format(form: words.Format | None, spec: TableSpec) -> CsvFormat:
    return csv_format(form, spec.schema, spec.column_order) if isinstance(form, words.CsvFormat) else CsvFormat()


def _worker(
    rows: Rows, slices: Sequence[tuple[int, Slice]], csv_format: CsvFormat, changed_ms: Mapping[int, int]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark runs in its workers, on the numbers of the slices."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                piece, part = slices[number]
                yield from rows.batches(_taken(rows, piece, part, csv_format, changed_ms[piece]))
        yield rows.told()

    return run


def _taken(
    rows: Rows, piece: int, part: Slice, csv_format: CsvFormat, changed_ms: int
) -> Iterator[tuple[object, ...] | None]:
    """What `Rows.take` gives of each record, up to the place where the file cannot be read."""
    try:
        for record in read_slice(part, csv_format):
            yield rows.take(record.values, piece, record.position, record.at, changed_ms)
    except Problem as problem:
        rows.note.problem = (piece, problem.position, problem.at, problem.reason)
