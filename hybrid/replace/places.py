"""The source of a staged row in readable form. Lines are not stored with rows, so the file is read again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hybrid.files.inputs import InputFile
from hybrid.files.reading import read_slice
from hybrid.files.records import Record
from hybrid.formats.csv_format import CsvFormat
from hybrid.replace.stage import place_of


def place_in_files(files: Sequence[InputFile], csv_format: CsvFormat, offset: int) -> str:
    """File and line, or row, of the staged row with this OFFSET."""
    number, position = place_of(offset)
    at = next((record.at for record in _records(files[number], csv_format) if record.position == position), "")
    return f"{files[number].path}{at}"


def _records(file: InputFile, csv_format: CsvFormat) -> Iterator[Record]:
    for piece in file.slices:
        yield from read_slice(piece, csv_format)
