"""Reads a sample of a file with the readers of jobs, and finds out how a CSV file is written."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from hybrid.config.table_config import Half
from hybrid.errors import DataError, NotFoundError, UsageError
from hybrid.files.inputs import DataFormat
from hybrid.files.jsonfile import json_shape
from hybrid.files.orcfile import stripes
from hybrid.files.parquetfile import row_groups
from hybrid.files.reading import read_slice
from hybrid.files.records import Shape, Slice, arrow_errors, open_plain, text_lines
from hybrid.formats.avro_messages import avro_library
from hybrid.formats.csv_cells import Dialect, rows_of
from hybrid.formats.csv_format import CsvFormat
from hybrid.operations.inference.column_sample import ValueKind, kind_of, meant
from hybrid.operations.inference.record_sample import (
    DeclaredType,
    MalformedRecord,
    RecordSample,
    SampledRecord,
)
from hybrid.operations.tables.given_documents import arrow_data_type
from hybrid.replace.backfill.inputs import FORMATS
from hybrid.schema.problem import Problem
from hybrid.schema.types import DataType

# A backfill takes no delimiter, so that it reads no tabs.
SUFFIXES = {**FORMATS, ".tsv": DataFormat.CSV}
_DELIMITERS = ",;\t|"
_SNIFFED_LINES = 200
_AVRO_TYPES = {
    "boolean": DataType.BOOLEAN,
    "int": DataType.INT,
    "long": DataType.LONG,
    "float": DataType.FLOAT,
    "double": DataType.DOUBLE,
    "bytes": DataType.BYTES,
    "string": DataType.STRING,
}


def file_format(path: Path, given: str | None = None) -> DataFormat:
    """The format of a file, by `given` or the ending of its name. UsageError when neither says it."""
    if given is not None:
        if given not in set(DataFormat):
            raise UsageError(f"'{given}' is no format of files. Known are {', '.join(DataFormat)}.")
        return DataFormat(given)
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    found = SUFFIXES.get(suffixes[-1]) if suffixes else None
    if found is None:
        raise UsageError(
            f"{path}: the ending of its name does not say its format. Known are {', '.join(SUFFIXES)}.",
            hint=f"hybrid table init FILE --file-format {'|'.join(DataFormat)}",
        )
    return found


def read_file(path: Path, data_format: DataFormat, records_max: int | None) -> RecordSample:
    """The first records of a file (None: all). Reading stops at the first place that holds none, as a job does.

    NotFoundError without such a file, DataError when it cannot be read, or holds no record at all.
    """
    if not path.is_file():
        raise NotFoundError(f"'{path}' is no file." if path.exists() else f"File '{path}' does not exist.")
    try:
        csv = sniff_csv(path) if data_format is DataFormat.CSV else None
        form = CsvFormat.of(csv or {}, frozenset(), str(path))
        found = _records(path, _slices(path, data_format), form, records_max)
        declared = _declared(path, data_format) if found[0] else {}
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error
    except Problem as problem:
        raise DataError(f"{path}{problem.at} {problem.reason}.") from problem
    records, malformed, is_cut = found
    if not records:
        reason = f"{malformed[0].place}: {malformed[0].reason}" if malformed else "it has no record"
        hint = "A file with one record is enough." if not malformed else None
        raise DataError(f"Nothing can be inferred from {path}: {reason}.", hint=hint)
    return RecordSample(str(path), Half.OFFLINE, records, malformed, None, is_cut, declared, csv, _is_array(path))


def _records(
    path: Path, slices: Sequence[Slice], form: CsvFormat, records_max: int | None
) -> tuple[list[SampledRecord], list[MalformedRecord], bool]:
    """The records, the place that holds none where there is one, and whether more records follow."""
    records: list[SampledRecord] = []
    reading = (record for piece in slices for record in read_slice(piece, form))
    try:
        for record in reading:
            if records_max is not None and len(records) >= records_max:
                return records, [], True
            records.append(SampledRecord(record.at.removeprefix(", "), record.values))
    except Problem as problem:
        return records, [MalformedRecord(problem.at.removeprefix(", ") or str(path), problem.reason)], False
    return records, [], False


def _slices(path: Path, data_format: DataFormat) -> Sequence[Slice]:
    if path.stat().st_size == 0:
        return []
    if data_format is DataFormat.PARQUET:
        return row_groups(path)
    if data_format is DataFormat.ORC:
        return stripes(path)
    if data_format is DataFormat.JSON:
        return [Slice(path, json_shape(path), bytes=sys.maxsize)]
    return [Slice(path, Shape.CSV if data_format is DataFormat.CSV else Shape.AVRO)]


def _is_array(path: Path) -> bool:
    with open_plain(path) as file:
        return file.read(1024).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")


# CSV


def sniff_csv(path: Path) -> dict[str, str]:
    """The configs of Pinot's CSV reader for a file, without those that have their defaults.

    The delimiter is the one that divides most lines into the same number of cells, more than one, as in DuckDB.
    A first line is no header when a cell of it is empty, a number, or repeated; then `header` names the columns.
    """
    lines = [text for text, _ in islice(text_lines(path), _SNIFFED_LINES)]
    tables = [(delimiter, _rows(lines, delimiter)) for delimiter in _DELIMITERS]
    delimiter, rows = max(tables, key=lambda table: _uniformity(table[1]))
    configs = {} if delimiter == "," else {"delimiter": delimiter}
    if not rows:
        return configs
    if all(not row[-1] for row in rows) and len(rows[0]) > 1:
        configs["trailingDelimiter"] = "true"
        rows = [row[:-1] for row in rows]
    if not is_header(rows[0]):
        configs["header"] = delimiter.join(f"c{number}" for number in range(1, len(rows[0]) + 1))
    return configs


def is_header(cells: Sequence[str]) -> bool:
    """Whether the first line of a CSV file names columns."""
    return len(set(cells)) == len(cells) and all(cell and kind_of(meant(cell)) is ValueKind.TEXT for cell in cells)


def _rows(lines: Iterable[str], delimiter: str) -> list[list[str]]:
    rows: list[list[str]] = []
    try:
        for _, cells in rows_of(iter(lines), Dialect(delimiter)):
            rows.append(cells)
    except Problem:  # the last row may be cut off; a real mistake is reported when the file is read
        pass
    return rows


def _uniformity(rows: Sequence[Sequence[str]]) -> tuple[float, int]:
    """The share of rows with the most frequent number of cells, and that number; 0 for rows of one cell."""
    if not rows:
        return 0.0, 0
    cells, count = Counter(map(len, rows)).most_common(1)[0]
    return (round(count / len(rows), 1), cells) if cells > 1 else (0.0, 1)


# Types that files declare


def _declared(path: Path, data_format: DataFormat) -> Mapping[str, DeclaredType]:
    if data_format is DataFormat.AVRO:
        return dict(_avro_types(path))
    if data_format not in {DataFormat.PARQUET, DataFormat.ORC}:
        return {}
    return dict(_arrow_types(_arrow_schema(path, data_format)))


def _arrow_schema(path: Path, data_format: DataFormat) -> Any:
    try:
        if data_format is DataFormat.PARQUET:
            import pyarrow.parquet as pq

            return pq.read_schema(path)
        import pyarrow.orc as orc

        return orc.ORCFile(path).schema
    except arrow_errors() as error:
        raise Problem(0, "", f"cannot be read: {error}") from error


def _arrow_types(schema: Any) -> Iterator[tuple[str, DeclaredType]]:
    for column in schema:
        try:
            name, is_list = arrow_data_type(column)
        except UsageError:  # the values decide
            continue
        yield column.name, DeclaredType(DataType(name), is_list)


def _avro_types(path: Path) -> Iterator[tuple[str, DeclaredType]]:
    """The primitive types of a file of Avro. Logical types are decided by their values."""
    with open_plain(path) as file:
        try:
            schema: Any = avro_library().reader(file).writer_schema
        except Exception:  # reading the records has reported it
            return
    for column in schema.get("fields", ()) if isinstance(schema, dict) else ():
        kinds = column["type"] if isinstance(column["type"], list) else [column["type"]]
        names = [kind for kind in kinds if kind != "null"]
        if len(names) == 1 and isinstance(names[0], str) and names[0] in _AVRO_TYPES:
            yield column["name"], DeclaredType(_AVRO_TYPES[names[0]])
