"""Files as a source of history: one file, a folder, or all that match a pattern; JSON, CSV or Parquet.

After Feldera's `file_input` (https://docs.feldera.com/connectors/sources/file). The files are pinned at the begin of a
load with sizes and digests. A continued load stops when one of them has changed. Followed files are read in rounds.
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
    """Some files, sorted by path: `read` says which, as a commit records it.

    `round_number` is the round of followed files, which are read as one piece. None: nothing follows after them.
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
        """See `Source`: the files; or a whole round of followed ones."""
        if self._round is not None:
            size = sum(file.bytes for file in self._files)
            return [SourcePiece(f"round {self._round}", None, size)] if self._files else []
        return self._named

    def check(self, spec: TableSpec, connector: str) -> None:
        """See `Source`: records of files are checked one by one."""

    def highest_offsets(self, spark: SparkSession) -> dict[str, int] | None:
        """See `Source`: files have none."""
        return None

    def stage(
        self, spark: SparkSession, spec: TableSpec, connector: str, numbers: Sequence[int], to: Path
    ) -> StagedBatch:
        """See `Source`."""
        if self._round is not None:
            numbers = range(len(self._files))
        slices = [(number, piece) for number in numbers for piece in self._files[number].slices]
        tasks = max(1, min(len(slices), _TASKS_PER_CORE * spark.sparkContext.defaultParallelism))
        # Pieces are numbered from 0 in each round, so the epoch makes rows of a later round newer.
        rows = Rows(spec, connector, message=self._message, epoch=self._round or 0)
        changed_ms = {number: self._files[number].modified_ns // _NS_PER_MS for number in numbers}
        worker = _worker(rows, slices, self._csv, changed_ms)
        frame = spark.range(0, len(slices), 1, tasks).mapInArrow(worker, staged_ddl(spec))
        staged = stage(frame, spec, connector, self._named, to)
        for number in numbers:
            self._files[number].check_unchanged()
        return staged


def open_files(
    config: words.FileInput, form: words.Format | None, spec: TableSpec, pinned: Mapping[str, Any] | None, rows_max: int
) -> FileSource:
    """The files of a connector: of a continued load, the pinned ones; of followed files, about `rows_max` rows.

    NotFoundError without files. DataError when a file has changed, or cannot be read.
    """
    reading = FileReading.of(form)
    if config.follow and pinned is None:
        return _of_round(first_round(_listed(config), reading, rows_max * BYTES_PER_ROW), form, spec)
    if pinned is not None and (pinned["form"] != str(form) or "files" not in pinned):
        raise _changed("The format, or `follow`,")
    paths = [Path(entry["path"]) for entry in pinned["files"]] if pinned is not None else _listed(config)
    files = [inspect(path, reading.data_format) for path in paths]
    if pinned is not None:
        pinned_files = {entry["path"]: entry for entry in pinned["files"]}
        changed = [str(file.path) for file in files if pinned_files.get(str(file.path)) != file.to_json()]
        if changed:
            raise _changed(", ".join(changed))
    return FileSource(files, form, spec, {"files": [file.to_json() for file in files]})


def open_files_after(
    config: words.FileInput, form: words.Format | None, spec: TableSpec, pinned: Mapping[str, Any], rows_max: int
) -> FileSource | None:
    """The additions since a round of followed files; None without any, and for files that are not followed.

    DataError when a file was truncated or changed.
    """
    if not config.follow:
        return None
    if pinned["form"] != str(form) or "round" not in pinned:
        raise _changed("The format, or `follow`,")
    following = next_round(_listed(config), FileReading.of(form), rows_max * BYTES_PER_ROW, pinned)
    return _of_round(following, form, spec) if following is not None else None


def _of_round(found: Round, form: words.Format | None, spec: TableSpec) -> FileSource:
    return FileSource(found.files, form, spec, found.to_json(), found.number)


def _changed(what: str) -> DataError:
    return DataError(
        f"{what} is not what the load began with: it has changed since. Nothing more was loaded.",
        hint="Put the old one back, or load into a new table.",
    )


def _listed(config: words.FileInput) -> list[Path]:
    """The existing files. NotFoundError without any; a followed folder or pattern may have none yet."""
    place = Path(config.path).expanduser().absolute()
    if place.is_dir():
        paths = [
            path
            for path in sorted(place.rglob("*"))
            if path.is_file() and not any(map(is_hidden, path.relative_to(place).parts))
        ]
    elif place.is_file():
        paths = [place]
    else:
        paths = [Path(path) for path in sorted(glob.glob(str(place), recursive=True)) if Path(path).is_file()]
    if not paths and not (config.follow and (place.is_dir() or glob.has_magic(str(place)))):
        raise NotFoundError(
            f"There is no file at {place}.",
            hint="Set another: hybrid table apply ... --set /connectors/NAME/transport/config/path=PATH",
        )
    return paths


def _csv_format(form: words.Format | None, spec: TableSpec) -> CsvFormat:
    return (
        csv_format(form, spec.schema, spec.column_order) if isinstance(form, words.ConnectorCsvFormat) else CsvFormat()
    )


def _worker(
    rows: Rows, slices: Sequence[tuple[int, Slice]], csv_format: CsvFormat, changed_ms: Mapping[int, int]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark's workers run on the numbers of the slices."""

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
    """The result of `Rows.take` for each record, up to the first unreadable place of the file."""
    try:
        for record in read_slice(part, csv_format):
            yield rows.take(record.values, piece, record.position, record.at, changed_ms)
    except Problem as problem:
        rows.note.problem = (piece, problem.position, problem.at, problem.reason)
