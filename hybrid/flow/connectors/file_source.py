"""Files as a source of history: one, those of a folder, or those that a pattern names; JSON, CSV or Parquet.

After Feldera's `file_input` (https://docs.feldera.com/connectors/sources/file). The files that are there when the load
begins are pinned with their sizes and digests: one that has changed since stops the load that goes on. Files that are
followed are read in rounds.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid.config import connectors as words
from hybrid.config.connector_stream import csv_format
from hybrid.config.table_config import MessageFormat, TableSpec
from hybrid.errors import DataError, NotFoundError
from hybrid.expression.path_patterns import is_hidden
from hybrid.files.inputs import inspect
from hybrid.files.reading import read_slice
from hybrid.files.records import Slice
from hybrid.flow.connectors.convert import Rows, stage, staged_ddl
from hybrid.flow.connectors.followed_files import FileReading, FoundFile, Round, first_round, next_round
from hybrid.flow.connectors.source import BYTES_PER_ROW, SourcePiece, StagedBatch
from hybrid.formats.csv_format import CsvFormat
from hybrid.schema.problem import Problem

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_TASKS_PER_CORE = 2
_NS_PER_MS = 1_000_000


class FileSource:
    """Some files, in the order of their paths: `read` says which, as a commit carries it.

    `round_number` is that of files that are followed, which are read in one piece; None: nothing comes after them.
    """

    def __init__(
        self,
        files: Sequence[FoundFile],
        form: words.Format | None,
        spec: TableSpec,
        read: Mapping[str, object],
        round_number: int | None = None,
    ) -> None:
        changes = isinstance(form, words.JsonFormat) and form.update_format is words.UpdateFormat.INSERT_DELETE
        self._message = MessageFormat.CHANGE if changes else MessageFormat.RECORD
        self._files, self._csv = files, _csv_format(form, spec)
        self._named = [SourcePiece(str(file.path), None, file.bytes) for file in files]
        self._pinned, self._round = {**read, "form": str(form)}, round_number

    @property
    def pinned(self) -> Mapping[str, object]:
        """See `Source`."""
        return self._pinned

    @property
    def is_last(self) -> bool:
        """See `Source`."""
        return self._round is None

    @property
    def pieces(self) -> Sequence[SourcePiece]:
        """See `Source`: the files, or a round of them, whatever it has."""
        if self._round is not None:
            size = sum(file.bytes for file in self._files)
            return [SourcePiece(f"round {self._round}", None, size)] if self._files else []
        return self._named

    def check(self, spec: TableSpec, connector: str) -> None:
        """See `Source`: records of files are looked at one by one."""

    def highest_offsets(self, spark: SparkSession) -> dict[str, int] | None:
        """See `Source`: files tell none."""
        return None

    def stage(
        self, spark: SparkSession, spec: TableSpec, connector: str, numbers: Sequence[int], to: Path
    ) -> StagedBatch:
        """See `Source`."""
        if self._round is not None:
            numbers = range(len(self._files))
        slices = [(number, piece) for number in numbers for piece in self._files[number].slices]
        tasks = max(1, min(len(slices), _TASKS_PER_CORE * spark.sparkContext.defaultParallelism))
        # Pieces are numbered in each round from 0: a later round's rows are newer all the same.
        rows = Rows(spec, connector, message=self._message, epoch=self._round or 0)
        changed_ms = {number: self._files[number].modified_ns // _NS_PER_MS for number in numbers}
        worker = _worker(rows, slices, self._csv, changed_ms)
        frame = spark.range(0, len(slices), 1, tasks).mapInArrow(worker, staged_ddl(spec))
        found = stage(frame, spec, connector, self._named, to)
        for number in numbers:
            self._files[number].check_unchanged()
        return found


def open_files(
    config: words.FileInput, form: words.Format | None, spec: TableSpec, pinned: Mapping[str, Any] | None, rows_max: int
) -> FileSource:
    """The files of a connector; of a load that goes on those that it began with. Of followed ones about `rows_max`.

    NotFoundError without any, DataError when one is another by now, or cannot be read.
    """
    reading = FileReading.of(form)
    if config.follow and pinned is None:
        return _of_round(first_round(_listed(config), reading, rows_max * BYTES_PER_ROW), form, spec)
    if pinned is not None and (pinned["form"] != str(form) or "files" not in pinned):
        raise _changed("The format, or `follow`,")
    paths = [Path(one["path"]) for one in pinned["files"]] if pinned is not None else _listed(config)
    files = [inspect(path, reading.data_format) for path in paths]
    if pinned is not None:
        known = {one["path"]: one for one in pinned["files"]}
        changed = [str(file.path) for file in files if known.get(str(file.path)) != file.to_json()]
        if changed:
            raise _changed(", ".join(changed))
    return FileSource(files, form, spec, {"files": [file.to_json() for file in files]})


def open_files_after(
    config: words.FileInput, form: words.Format | None, spec: TableSpec, pinned: Mapping[str, Any], rows_max: int
) -> FileSource | None:
    """What has come since a round of followed files; None while there is nothing, and where they are not followed.

    DataError when a file was cut or changed.
    """
    if not config.follow:
        return None
    if pinned["form"] != str(form) or "round" not in pinned:
        raise _changed("The format, or `follow`,")
    found = next_round(_listed(config), FileReading.of(form), rows_max * BYTES_PER_ROW, pinned)
    return _of_round(found, form, spec) if found is not None else None


def _of_round(found: Round, form: words.Format | None, spec: TableSpec) -> FileSource:
    return FileSource(found.files, form, spec, found.to_json(), found.number)


def _changed(what: str) -> DataError:
    return DataError(
        f"{what} is not what the load began with: it has changed since. Nothing more was loaded.",
        hint="Put the old one back, or load into a new table.",
    )


def _listed(config: words.FileInput) -> list[Path]:
    """The files that are there. NotFoundError without any; a folder or a pattern that is followed may have none yet."""
    place = Path(config.path).expanduser()
    if place.is_dir():
        found = [
            one
            for one in sorted(place.rglob("*"))
            if one.is_file() and not any(map(is_hidden, one.relative_to(place).parts))
        ]
    elif place.is_file():
        found = [place]
    else:
        found = [Path(one) for one in sorted(glob.glob(str(place), recursive=True)) if Path(one).is_file()]
    if not found and not (config.follow and (place.is_dir() or glob.has_magic(str(place)))):
        raise NotFoundError(
            f"There is no file at {config.path}.", hint="Set another: --set /connectors/NAME/transport/config/path=PATH"
        )
    return [one.absolute() for one in found]


def _csv_format(form: words.Format | None, spec: TableSpec) -> CsvFormat:
    return (
        csv_format(form, spec.schema, spec.column_order) if isinstance(form, words.ConnectorCsvFormat) else CsvFormat()
    )


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
