"""CSV files, as Pinot's CSVRecordReaderConfig describes them. Every cell is text; the schema gives it a type."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hybrid.errors import SpecError
from hybrid.files.records import Problem, Record, Slice, text_lines

# What Pinot's `fileFormat` names mean: Commons CSV's formats.
_FILE_FORMATS: dict[str, dict[str, Any]] = {
    "DEFAULT": {},
    "EXCEL": {},
    "RFC4180": {},
    "TDF": {"delimiter": "\t"},
    "MYSQL": {"delimiter": "\t", "quote": None, "escape": "\\", "null": "\\N"},
}


@dataclass(frozen=True)
class CsvFormat:
    """How cells are told apart. `columns` stand in for a header line; `null` is the text of a missing value."""

    delimiter: str = ","
    multi_value_delimiter: str = ";"
    columns: tuple[str, ...] = ()
    skip_header: bool = False
    quote: str | None = '"'
    escape: str | None = None
    null: str | None = None
    multi_value: frozenset[str] = frozenset()

    @classmethod
    def of(cls, configs: Mapping[str, str], multi_value: frozenset[str], source: str) -> CsvFormat:
        """The format that a job spec's reader `configs` give; `multi_value` names the columns whose cells are split."""
        name = configs.get("fileFormat", "DEFAULT").upper()
        if name not in _FILE_FORMATS:
            known = ", ".join(_FILE_FORMATS)
            raise SpecError.at(source, "recordReaderSpec.configs.fileFormat", f"'{name}' is not one of {known}.")
        named = _FILE_FORMATS[name]
        delimiter = configs.get("delimiter", named.get("delimiter", ","))
        return cls(
            delimiter=delimiter,
            multi_value_delimiter=configs.get("multiValueDelimiter", ";"),
            columns=tuple(part.strip() for part in configs["header"].split(delimiter)) if "header" in configs else (),
            skip_header=configs.get("skipHeader", "false").lower() == "true",
            quote=named.get("quote", '"'),
            escape=named.get("escape"),
            null=configs.get("nullStringValue", named.get("null")),
            multi_value=multi_value,
        )

    def value(self, column: str, cell: str) -> object:
        """What a cell holds: None when it is empty, a list in a multi-value column, text otherwise."""
        if cell in {"", self.null}:
            return None
        return cell.split(self.multi_value_delimiter) if column in self.multi_value else cell


def read_csv(piece: Slice, form: CsvFormat) -> Iterator[Record]:
    """The rows of a file below its header. Problem at a row with more or fewer cells than the header."""
    csv.field_size_limit(2**31 - 1)
    rows = _rows(csv.reader((text for text, _ in text_lines(piece.path)), **_dialect(form)))
    header = _header(rows, form)
    for position, (line, cells) in enumerate(rows):
        at = f", line {line}"
        if len(cells) != len(header):
            raise Problem(position, at, f"has {len(cells)} cells where the header has {len(header)}")
        yield Record(position, at, {name: form.value(name, cell) for name, cell in zip(header, cells, strict=True)})


def _dialect(form: CsvFormat) -> dict[str, Any]:
    return {
        "delimiter": form.delimiter,
        "quotechar": form.quote,
        "escapechar": form.escape,
        "quoting": csv.QUOTE_MINIMAL if form.quote else csv.QUOTE_NONE,
        "strict": True,
    }


def _rows(reader: Any) -> Iterator[tuple[int, list[str]]]:
    """(number of its first line, cells) of each row that is not blank; a quoted cell may span lines."""
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise Problem(line, f", line {line}", f"is not CSV: {error}") from error
        if cells:
            yield line, cells


def _header(rows: Iterator[tuple[int, list[str]]], form: CsvFormat) -> Sequence[str]:
    first = [] if form.columns and not form.skip_header else next(rows, (0, []))[1]
    header = form.columns or tuple(name.strip() for name in first)
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        raise Problem(0, ", line 1", f"names column '{twice}' twice")
    if not header:
        raise Problem(0, "", "has no header line")
    return header
