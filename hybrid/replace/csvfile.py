"""CSV files, as Pinot's CSVRecordReaderConfig describes them. Every cell is text; the table's schema gives it a type."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hybrid.errors import SpecError
from hybrid.replace.records import Problem, Record, Slice, text_lines

_ESCAPED = {"\\t": "\t", "\\|": "|"}
_IMPLEMENTED = (
    "delimiter",
    "multiValueDelimiter",
    "header",
    "skipHeader",
    "quoteCharacter",
    "escapeCharacter",
    "nullStringValue",
    "ignoreSurroundingSpaces",
)


@dataclass(frozen=True)
class CsvFormat:
    """How cells are told apart. `columns` stand in for a header line; `null` is the text of a missing value."""

    delimiter: str = ","
    multi_value_delimiter: str = ";"
    columns: tuple[str, ...] = ()
    skip_header: bool = False
    quote: str = '"'
    escape: str | None = None
    null: str | None = None
    strip: bool = True
    multi_value: frozenset[str] = frozenset()

    @classmethod
    def of(cls, configs: Mapping[str, Any], multi_value: frozenset[str], source: str) -> CsvFormat:
        """The format that a job spec's reader `configs` give; `multi_value` names the columns whose cells are split."""
        delimiter = _character(configs, "delimiter", ",", source)
        return cls(
            delimiter=delimiter,
            multi_value_delimiter=_character(configs, "multiValueDelimiter", ";", source),
            columns=_columns(configs.get("header"), delimiter),
            skip_header=_flag(configs, "skipHeader", False),
            quote=_character(configs, "quoteCharacter", '"', source),
            escape=_character(configs, "escapeCharacter", "", source) or None,
            null=str(configs["nullStringValue"]) if "nullStringValue" in configs else None,
            strip=_flag(configs, "ignoreSurroundingSpaces", True),
            multi_value=multi_value,
        )

    def value(self, column: str, cell: str) -> object:
        """What a cell holds: None when it is empty, a list in a multi-value column, text otherwise."""
        text = cell.strip() if self.strip else cell
        if text == "" or text == self.null:
            return None
        return text.split(self.multi_value_delimiter) if column in self.multi_value else text


def warnings_of(configs: Mapping[str, Any]) -> list[str]:
    """One warning for each setting that is read and not used."""
    return [
        f"recordReaderSpec.configs.{key} is not implemented and was ignored."
        for key in configs
        if key not in _IMPLEMENTED
    ]


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
        "skipinitialspace": form.strip,
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


def _columns(header: object, delimiter: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in str(header).split(delimiter)) if header else ()


def _flag(configs: Mapping[str, Any], key: str, default: bool) -> bool:
    return str(configs.get(key, default)).lower() == "true"


def _character(configs: Mapping[str, Any], key: str, default: str, source: str) -> str:
    text = str(configs.get(key, default))
    text = _ESCAPED.get(text, text)
    if len(text) > 1 or (default and not text):
        raise SpecError.at(source, f"recordReaderSpec.configs.{key}", f"'{text}' is not one character.")
    return text
