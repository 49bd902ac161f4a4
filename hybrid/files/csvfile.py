"""CSV files, as Pinot's CSVRecordReaderConfig describes them. Every cell is text; the schema gives it a type."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from hybrid.files.records import Record, Slice, is_gzip, text_lines
from hybrid.spec.csvcells import rows_of
from hybrid.spec.csvformat import CsvFormat, header_of
from hybrid.spec.problem import Problem


def read_csv(piece: Slice, form: CsvFormat) -> Iterator[Record]:
    """The rows of a file below its header. Problem at a row with more or fewer cells than the header."""
    rows = rows_of((text for text, _ in text_lines(piece.path)), form.dialect)
    header = header_of(rows, form)
    for position, (line, cells) in enumerate(rows):
        at = f", line {line}"
        if len(cells) != len(header):
            raise Problem(position, at, f"has {len(cells)} cells where the header has {len(header)}")
        yield Record(position, at, {name: form.value(name, cell) for name, cell in zip(header, cells, strict=True)})


def ends_line(path: Path) -> bool:
    """Whether the last line of a file has its end; one without may have been cut off within its last cell."""
    with path.open("rb") as file:
        if is_gzip(path) or file.seek(0, os.SEEK_END) == 0:
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) in b"\r\n"
