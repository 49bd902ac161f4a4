"""Reads the records of a slice, in any format."""

from __future__ import annotations

from collections.abc import Iterator

from hybrid.files.avrofile import read_avro
from hybrid.files.csvfile import read_csv
from hybrid.files.jsonfile import read_lines, read_whole
from hybrid.files.limits import DEFAULT_LIMITS, FileLimits
from hybrid.files.orcfile import read_stripe
from hybrid.files.parquetfile import read_row_group
from hybrid.files.records import Record, Shape, Slice, Wrong, raise_problem
from hybrid.formats.csv_format import CsvFormat
from hybrid.schema.problem import Problem


def read_slice(
    piece: Slice, csv_format: CsvFormat, limits: FileLimits = DEFAULT_LIMITS, wrong: Wrong = raise_problem
) -> Iterator[Record]:
    """The records of a slice in their order. Problem at the first place that is not a record.

    `wrong` is given rows of CSV and lines of JSON that are no records; what it does not raise is left out.
    """
    try:
        if piece.shape is Shape.JSON_LINES:
            yield from read_lines(piece, limits, wrong)
        elif piece.shape is Shape.JSON_WHOLE:
            yield from read_whole(piece, limits)
        elif piece.shape is Shape.CSV:
            yield from read_csv(piece, csv_format, limits, wrong)
        elif piece.shape is Shape.AVRO:
            yield from read_avro(piece)
        elif piece.shape is Shape.ORC:
            yield from read_stripe(piece, limits)
        else:
            yield from read_row_group(piece, limits)
    except OSError as error:
        raise Problem(piece.first, "", f"cannot be read: {error}") from error
