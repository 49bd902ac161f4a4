"""CSV files, as Pinot's CSVRecordReaderConfig describes them. Every cell is text; the schema gives it a type."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from hybrid.files.limits import DEFAULT_LIMITS, FileLimits
from hybrid.files.records import Record, Slice, Wrong, is_gzip, raise_problem, text_lines
from hybrid.formats.csv_cells import rows_of
from hybrid.formats.csv_format import CsvFormat, header_of
from hybrid.schema.problem import Problem

_SHOWN_MAX = 10


def read_csv(
    piece: Slice, form: CsvFormat, limits: FileLimits = DEFAULT_LIMITS, wrong: Wrong = raise_problem
) -> Iterator[Record]:
    """The rows of a file, or of some whole lines of it, below its header.

    A row with more or fewer cells than the header is `wrong`.
    """
    rows = rows_of(_lines(piece, limits), form.dialect, piece.first)
    header = header_of(rows, replace(form, skip_header=False) if piece.start else form)
    for position, (line, cells) in enumerate(rows):
        at = f", line {line}"
        if form.trailing_delimiter and len(cells) == len(header) + 1 and not cells[-1]:
            cells = cells[:-1]
        if len(cells) != len(header):
            wrong(Problem(position, at, _unequal(header, cells, form)))
            continue
        yield Record(position, at, {name: form.value(name, cell) for name, cell in zip(header, cells, strict=True)})


def _unequal(header: Sequence[str], cells: Sequence[str], form: CsvFormat) -> str:
    shown = ", ".join(header[:_SHOWN_MAX]) + (", ..." if len(header) > _SHOWN_MAX else "")
    words = f"has {len(cells)} cells where the header has {len(header)} ({shown}; delimiter {form.dialect.delimiter!r})"
    if len(cells) == len(header) + 1 and not cells[-1]:
        words += ". Its rows end in the delimiter: set trailingDelimiter to true in recordReaderSpec.configs"
    return words


def _lines(piece: Slice, limits: FileLimits) -> Iterator[str]:
    bytes_left = piece.bytes or sys.maxsize
    for text, size in text_lines(piece.path, piece.start, piece.first, limits):
        if bytes_left <= 0:
            return
        bytes_left -= size
        yield text


def ends_line(path: Path) -> bool:
    """Whether the last line of a file is terminated; otherwise its last cell may be truncated."""
    with path.open("rb") as file:
        if is_gzip(path) or file.seek(0, os.SEEK_END) == 0:
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) in b"\r\n"
