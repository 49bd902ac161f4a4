"""Reads a job's files in Spark's workers, converts each row with the table's decoder and stages it as Parquet.

The OFFLINE config's transforms and filter apply. Their now() is the time of the file's last change, so that the same
job gives the same rows. Each slice also writes one note: the number of rows and of filtered records, their times, the
columns it saw, or the first wrong places. The driver reads the notes, so an error names the exact rows and is raised
before anything is changed.
"""

from __future__ import annotations

import dataclasses
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid.config.table_config import Half, TableSpec
from hybrid.errors import ERRORS_MAX, DataError, suggestion
from hybrid.files.inputs import InputFile
from hybrid.files.reading import read_slice
from hybrid.files.records import Record, Shape, Slice
from hybrid.formats.csv_format import CsvFormat
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.staged_frames import stage_frame
from hybrid.lake.worker_inputs import InputReader, WorkerInputs
from hybrid.lake.workers import RETURNED, fault_in_text, listed_rows, parallelism
from hybrid.records.decode import Decoder
from hybrid.records.outcome import Filtered, Rejected
from hybrid.replace.check_rows import NULLS
from hybrid.schema.problem import Problem
from hybrid.table import columns

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

# Columns of staged rows beside the user's and OFFSET, OP, TIME, NULLS: the file's number in the job, and a slice's
# note.
FILE, NOTE = "_hy_file", "_hy_note"

# Rows of the job are numbered by file, then by position in the file.
_ROWS_PER_FILE_BITS = 40
_BATCH_ROWS = 4096
_TASKS_PER_CORE = 4
_PIECES_DDL = (
    "file int, changed_ms bigint, key string, path string, shape string, first bigint, start bigint, bytes bigint"
)
_NS_PER_MS = 1_000_000

_Time = tuple[int, str]


@dataclass(frozen=True)
class StagedFile:
    """The rows of one file: `rows` without delete markers, `deletes`, and the first and last time in ms.

    `filtered` counts the records that the table's filter dropped. `low_stored` and `high_stored` are the least and the
    greatest value of a time column finer than milliseconds. `low_at` and `high_at` are the places of a row with these
    times, `sha256` is that of the file.
    """

    path: Path
    rows: int
    deletes: int
    low: int | None
    high: int | None
    sha256: str = ""
    low_at: str = ""
    high_at: str = ""
    filtered: int = 0
    low_stored: int | str | None = None
    high_stored: int | str | None = None

    def left_with(self, rows: int, deletes: int, low: int | None, high: int | None) -> StagedFile:
        """The file after some rows were left out. The places and stored times of its first and last row are unknown."""
        left = replace(self, rows=rows, deletes=deletes, low=low, high=high)
        is_whole = (rows, deletes) == (self.rows, self.deletes)
        return left if is_whole else replace(left, low_at="", low_stored=None, high_at="", high_stored=None)

    @property
    def is_empty(self) -> bool:
        """Whether it holds no record at all."""
        return not (self.rows or self.deletes or self.filtered)


@dataclass(frozen=True)
class StagedRows:
    """A job's converted rows: `frame` holds user columns, OFFSET, OP, TIME, NULLS and FILE.

    `absent` are columns that no row has; `filtered` counts the records that the table's filter dropped.
    """

    frame: DataFrame
    files: tuple[StagedFile, ...]
    absent: tuple[str, ...]
    filtered: int = 0

    @property
    def rows(self) -> int:
        """The number of rows without delete markers."""
        return sum(file.rows for file in self.files)

    @property
    def is_empty(self) -> bool:
        """Whether the input holds neither rows nor delete markers."""
        return not any(file.rows or file.deletes for file in self.files)


@dataclass
class _CellNote:
    """What one slice reports to the driver; `low` and `high` are (ms, at), `problems` are (position, at, reason).

    `stored` are the least and the greatest value of a time column finer than milliseconds.
    """

    file: int
    rows: int = 0
    deletes: int = 0
    low: _Time | None = None
    high: _Time | None = None
    filtered: int = 0
    stored: tuple[Any, Any] | None = None
    seen: set[str] = field(default_factory=set)
    problems: list[tuple[int, str, str]] = field(default_factory=list)

    def add_problem(self, problem: Problem) -> None:
        """Note a row that is wrong. The problem is raised when as many are noted as are reported."""
        if len(self.problems) >= ERRORS_MAX:
            raise problem
        self.problems.append((problem.position, problem.at, problem.reason))

    def count(self, is_delete: bool, time_ms: int | None, at: str, stored: Any = None) -> None:
        self.rows += not is_delete
        self.deletes += is_delete
        if time_ms is None:
            return
        if self.low is None or time_ms < self.low[0]:
            self.low = (time_ms, at)
        if self.high is None or time_ms > self.high[0]:
            self.high = (time_ms, at)
        if stored is not None:
            low, high = self.stored or (stored, stored)
            self.stored = min(low, stored), max(high, stored)

    def to_text(self) -> str:
        return json.dumps({**vars(self), "seen": sorted(self.seen)})

    @classmethod
    def from_text(cls, text: str) -> _CellNote:
        doc = json.loads(text)
        tuples = {name: tuple(doc[name]) if doc[name] else None for name in ("low", "high", "stored")}
        problems = [(int(position), str(at), str(reason)) for position, at, reason in doc["problems"]]
        return cls(**{**doc, **tuples, "seen": set(doc["seen"]), "problems": problems})


def stage(
    bench: CommitContext,
    spec: TableSpec,
    files: Sequence[InputFile],
    csv_format: CsvFormat,
    folder: Path,
    watched: Sequence[str] = (),
) -> StagedRows:
    """Stages the rows of `files` in `folder`. DataError names the first rows that cannot become rows of the table.

    For the columns `watched`, a row records which of them had no value, because a default may replace it.
    """
    pieces = [
        (number, piece, file.modified_ns // _NS_PER_MS) for number, file in enumerate(files) for piece in file.slices
    ]
    inputs = WorkerInputs.of(bench, [piece.path for _, piece, _ in pieces], folder.with_name("files"))
    spark = bench.session
    # A worker that has to fetch a file reads as much of it as it can.
    tasks = max(1, min(len(pieces), (1 if inputs.is_uploaded else _TASKS_PER_CORE) * parallelism(spark)))
    if inputs.is_uploaded and pieces:
        rows = [_listed(number, piece, changed_ms, inputs.keys[piece.path]) for number, piece, changed_ms in pieces]
        listed, pieces = listed_rows(spark, rows, _PIECES_DDL, tasks), []
    else:
        listed = spark.range(0, len(pieces), 1, tasks)
    frame = listed.mapInArrow(_worker(spec, pieces, csv_format, watched, inputs.reader), _ddl(spec))
    staged = stage_frame(bench, frame, folder, _ddl(spec))
    for file in files:
        file.check_unchanged()
    notes = [_CellNote.from_text(row[0]) for row in staged.where(f"{NOTE} IS NOT NULL").select(NOTE).collect()]
    _refuse_problems(files, notes)
    seen = set().union(*(note.seen for note in notes))
    absent = tuple(name for name in spec.schema.column_names if name not in seen)
    filtered = sum(note.filtered for note in notes)
    return StagedRows(staged.where(f"{NOTE} IS NULL").drop(NOTE), tuple(_by_file(files, notes)), absent, filtered)


def _listed(file: int, piece: Slice, changed_ms: int, key: str) -> tuple[object, ...]:
    """A slice and the key of its file, as a row of `_PIECES_DDL`."""
    return file, changed_ms, key, str(piece.path), piece.shape.value, piece.first, piece.start, piece.bytes


def _piece_in(row: Mapping[str, Any]) -> tuple[int, Slice, int, str]:
    """The file's number, a slice, when the file was changed, and its key, from a row of `_PIECES_DDL`."""
    piece = Slice(Path(row["path"]), Shape(row["shape"]), row["first"], row["start"], row["bytes"])
    return row["file"], piece, row["changed_ms"], row["key"]


def place_of(offset: int) -> tuple[int, int]:
    """The number of the file that a staged row was read from, and its position in it."""
    return offset >> _ROWS_PER_FILE_BITS, offset & ((1 << _ROWS_PER_FILE_BITS) - 1)


def _offset(file: int, position: int) -> int:
    return (file << _ROWS_PER_FILE_BITS) + position


def _by_file(files: Sequence[InputFile], notes: Iterable[_CellNote]) -> Iterator[StagedFile]:
    of_file: dict[int, list[_CellNote]] = defaultdict(list)
    for note in notes:
        of_file[note.file].append(note)
    for number, file in enumerate(files):
        low = min((note.low for note in of_file[number] if note.low is not None), default=None)
        high = max((note.high for note in of_file[number] if note.high is not None), default=None)
        rows, deletes = sum(note.rows for note in of_file[number]), sum(note.deletes for note in of_file[number])
        (low_ms, low_at), (high_ms, high_at) = low or (None, ""), high or (None, "")
        filtered = sum(note.filtered for note in of_file[number])
        stored = [value for note in of_file[number] for value in note.stored or ()]
        ends = (min(stored, default=None), max(stored, default=None))
        yield StagedFile(file.path, rows, deletes, low_ms, high_ms, file.sha256, low_at, high_at, filtered, *ends)


def _refuse_problems(files: Sequence[InputFile], notes: Iterable[_CellNote]) -> None:
    wrong = sorted((note.file, problem) for note in notes for problem in note.problems)
    if not wrong:
        return
    number, (_, at, reason) = wrong[0]
    others = sorted({files[file].path.name for file, _ in wrong[1:]} - {files[number].path.name})
    more = f" There are wrong rows in {len(others)} further files, e.g. {others[0]}." if others else ""
    error = DataError(
        f"{files[number].path}{at}: {reason.rstrip('.')}.{more} Nothing was changed.",
        hint="Correct the file and run the job again.",
    )
    raise error.carry(
        DataError(f"{files[file].path}{at}: {reason.rstrip('.')}.") for file, (_, at, reason) in wrong[1:ERRORS_MAX]
    )


def _worker(
    spec: TableSpec,
    pieces: Sequence[tuple[int, Slice, int]],
    csv_format: CsvFormat,
    watched: Sequence[str],
    reader: InputReader,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark's workers run on the numbers of the slices, or without `pieces` on `_PIECES_DDL`."""

    def convert(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        converter = _Converter(spec, watched)
        try:
            with reader.opened() as path_of:
                for batch in batches:
                    for row in batch.to_pylist():
                        file, piece, changed_ms, key = (*pieces[row["id"]], "") if pieces else _piece_in(row)
                        readable = dataclasses.replace(piece, path=path_of(piece.path, key))
                        yield from _stage_slice(converter, _CellNote(file), readable, csv_format, changed_ms)
        except RETURNED as error:
            raise fault_in_text(error) from None

    return convert


def _stage_slice(
    converter: _Converter, note: _CellNote, piece: Slice, csv_format: CsvFormat, changed_ms: int
) -> Iterator[pa.RecordBatch]:
    spec = converter.spec
    rows: list[tuple[object, ...]] = []
    try:
        for record in read_slice(piece, csv_format, wrong=note.add_problem):
            try:
                row = converter.row(record, note, changed_ms)
            except Problem as problem:
                note.add_problem(problem)
                continue
            if row is not None:
                rows.append(row)
            if len(rows) == _BATCH_ROWS:
                yield _batch(spec, rows)
                rows = []
    except Problem as problem:  # it ends the file, or is one more than are reported
        with suppress(Problem):
            note.add_problem(problem)
    nothing = (None,) * len(spec.schema.fields)
    yield _batch(spec, [*rows, (*nothing, None, None, None, None, note.file, note.to_text())])


class _Converter:
    """Converts records to staged rows, in one worker."""

    def __init__(self, spec: TableSpec, watched: Sequence[str]) -> None:
        self.spec = spec
        self._watched = [field for field in spec.schema.fields if field.name in watched]
        self._decoder = Decoder(spec, Half.OFFLINE)
        self._known = self._decoder.reads.union(spec.schema.column_names)
        time = spec.time_field
        is_fine = time is not None and time.time_format is not None and time.time_format.is_finer_than_millis
        self._fine = spec.schema.column_names.index(time.name) if time is not None and is_fine else None
        self._needed = [*spec.schema.primary_key, *([spec.time_column] if spec.time_column else [])]

    def row(self, record: Record, note: _CellNote, changed_ms: int) -> tuple[object, ...] | None:
        """A staged row; None when the table's filter drops the record. Problem when the record gives no row."""
        record = record._replace(values=self._decoder.named(record.values))
        self._check_columns(record)
        shaped = self._decoder.shape(record.values, changed_ms)
        if isinstance(shaped, Filtered):
            note.filtered += 1
            return None
        if isinstance(shaped, Rejected):
            raise Problem(record.position, record.at, shaped.reason)
        self._check_needed(record, shaped)
        row = self._decoder.store(shaped)
        if isinstance(row, Rejected):
            raise Problem(record.position, record.at, row.reason)
        note.seen.update(shaped)
        stored = row.values[self._fine] if self._fine is not None else None
        note.count(row.is_delete, row.time_ms, record.at, stored)
        offset = _offset(note.file, record.position)
        op = columns.OP_DELETE if row.is_delete else columns.OP_ROW
        return (*row.values, offset, op, row.time_ms, self._nulls(shaped), note.file, None)

    def _nulls(self, shaped: Mapping[str, object]) -> list[str]:
        """The watched columns without a value. An absent field does not count where its column has its own default."""
        return [
            field.name
            for field in self._watched
            if shaped.get(field.name) is None and not (field.missing and field.name not in shaped)
        ]

    def _check_columns(self, record: Record) -> None:
        """Problem for a column outside the schema: it is probably misspelt, and the right one would get its default.

        Fields that transforms and the filter read need not be in the schema.
        """
        for name in record.values.keys() - self._known:
            near = suggestion(name, self.spec.schema.column_names)
            reason = f"column '{name}' is not in the schema of '{self.spec.name}'.{near}"
            raise Problem(record.position, record.at, reason.removesuffix("."))

    def _check_needed(self, record: Record, shaped: Mapping[str, object]) -> None:
        for name in self._needed:
            if shaped.get(name) is None:
                what = "time column" if name == self.spec.time_column else "primary key column"
                raise Problem(record.position, record.at, f"{what} '{name}' has no value")


def _batch(spec: TableSpec, rows: Sequence[tuple[object, ...]]) -> pa.RecordBatch:
    import pyarrow as pa

    user = [pa.field(field.name, field.arrow_type()) for field in spec.schema.fields]
    own = [(columns.OFFSET, pa.int64()), (columns.OP, pa.string()), (columns.TIME, pa.int64())]
    schema = pa.schema([*user, *own, (NULLS, pa.list_(pa.string())), (FILE, pa.int32()), (NOTE, pa.string())])
    arrays = [pa.array(list(values), field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _ddl(spec: TableSpec) -> str:
    hidden = dict(columns.HIDDEN)
    own = [(name, hidden[name]) for name in (columns.OFFSET, columns.OP, columns.TIME)]
    user = [(field.name, field.spark_type) for field in spec.schema.fields]
    return ", ".join(
        f"`{name}` {kind}" for name, kind in [*user, *own, (NULLS, "array<string>"), (FILE, "int"), (NOTE, "string")]
    )
