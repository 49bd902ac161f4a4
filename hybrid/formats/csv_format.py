"""The format of CSV files and messages, as in Pinot's CSVRecordReaderConfig.

Every cell is text; the schema determines its type.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hybrid.errors import SpecError
from hybrid.formats.csv_cells import EMPTY_TEXT, Dialect, rows_of
from hybrid.schema.jsontext import parse_json
from hybrid.schema.problem import Problem
from hybrid.schema.schema import Schema
from hybrid.schema.types import DataType

# The values of Pinot's `fileFormat`: Commons CSV's predefined formats, without regard to case and underscores.
_FILE_FORMATS: dict[str, dict[str, Any]] = {
    "DEFAULT": {},
    "EXCEL": {},
    "RFC4180": {},
    "TDF": {"delimiter": "\t"},
    "MYSQL": {"delimiter": "\t", "quote": None, "escape": "\\", "null": "\\N"},
    "ORACLE": {"escape": "\\", "null": "\\N"},
    "POSTGRESQLCSV": {},
    "POSTGRESQLTEXT": {"delimiter": "\t", "escape": "\\", "null": "\\N"},
    "MONGODBCSV": {},
    "MONGODBTSV": {"delimiter": "\t"},
    "INFORMIXUNLOAD": {"delimiter": "|", "escape": "\\"},
    "INFORMIXUNLOADCSV": {},
}


@dataclass(frozen=True)
class CsvFormat:
    """The format of a file. `columns` replace a header line; `null` is the text of a missing value.

    Cells of the columns in `multi_value` are split at `multi_value_delimiter`, or are a JSON array, as in query
    results; without a delimiter (None) they are neither. In the columns of `texts` an empty quoted cell is an empty
    text. `trailing_delimiter`: rows end with a delimiter, after which no cell follows.
    """

    dialect: Dialect = field(default_factory=Dialect)
    multi_value_delimiter: str | None = ";"
    columns: tuple[str, ...] = ()
    skip_header: bool = False
    null: str | None = None
    multi_value: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    trailing_delimiter: bool = False

    @classmethod
    def of(
        cls,
        configs: Mapping[str, str],
        multi_value: frozenset[str],
        source: str,
        place: str = "recordReaderSpec.configs.",
        texts: frozenset[str] = frozenset(),
    ) -> CsvFormat:
        """The format in the `configs` of Pinot's CSV reader, which are at `place` of `source`.

        `multi_value` names the columns whose cells are split, `texts` the columns that can hold an empty text.
        """
        name = configs.get("fileFormat", "DEFAULT").replace("_", "").upper()
        if name not in _FILE_FORMATS:
            names = ", ".join(_FILE_FORMATS)
            raise SpecError.at(source, f"{place}fileFormat", f"'{name}' is not one of {names}.")
        defaults = _FILE_FORMATS[name]
        dialect = _dialect(configs, defaults)
        splits = _is_true(configs, "multiValueDelimiterEnabled", default=True)
        return cls(
            dialect=dialect,
            multi_value_delimiter=(configs.get("multiValueDelimiter", ";") if splits else "") or None,
            columns=_columns(configs, dialect, source, place),
            skip_header=_is_true(configs, "skipHeader"),
            null=configs.get("nullStringValue", defaults.get("null")),
            multi_value=multi_value,
            texts=texts,
            trailing_delimiter=_is_true(configs, "trailingDelimiter"),
        )

    def value(self, column: str, cell: str) -> object:
        """The value of a cell: None when it is empty, a list in a multi-value column, text otherwise."""
        if cell in {"", self.null}:
            return "" if cell is EMPTY_TEXT and self.null != "" and column in self.texts else None
        if self.multi_value_delimiter is None or column not in self.multi_value:
            return cell
        values = _array(cell)
        return cell.split(self.multi_value_delimiter) if values is None else values


def multi_value_columns(schema: Schema) -> frozenset[str]:
    """The columns whose cells hold several values."""
    return frozenset(field.name for field in schema.fields if not field.single_value)


def text_columns(schema: Schema) -> frozenset[str]:
    """The columns that can hold an empty text."""
    return frozenset(
        field.name
        for field in schema.fields
        if field.single_value and field.data_type in {DataType.STRING, DataType.BYTES}
    )


def _array(cell: str) -> list[object] | None:
    """The values of a cell that is a JSON array; None for any other cell."""
    if not (cell.startswith("[") and cell.endswith("]")):
        return None
    try:
        values = parse_json(cell)
    except (ValueError, RecursionError):
        return None
    return values if isinstance(values, list) else None


def _dialect(configs: Mapping[str, str], named: Mapping[str, Any]) -> Dialect:
    return Dialect(
        delimiter=configs.get("delimiter", named.get("delimiter", ",")),
        quote=configs.get("quoteCharacter", named.get("quote", '"')),
        escape=configs.get("escapeCharacter", named.get("escape")),
        comment=configs.get("commentMarker"),
        trim=_is_true(configs, "ignoreSurroundingSpaces", default=True),
        skips_blank_lines=_is_true(configs, "ignoreEmptyLines", default=True),
    )


def _is_true(configs: Mapping[str, str], key: str, default: bool = False) -> bool:
    return configs.get(key, str(default)).lower() == "true"


def _columns(configs: Mapping[str, str], dialect: Dialect, source: str, place: str) -> tuple[str, ...]:
    """The names in `header`, split like the cells of a row."""
    if "header" not in configs:
        return ()
    try:
        rows = list(rows_of(iter([configs["header"]]), dialect))
    except Problem as problem:
        raise SpecError.at(source, f"{place}header", f"'{configs['header']}' {problem.reason}.") from problem
    return tuple(name.strip() for _, cells in rows for name in cells)


def header_of(rows: Iterator[tuple[int, list[str]]], form: CsvFormat) -> Sequence[str]:
    """The names of the columns: those of `form`, or the first row, which is consumed. Problem without any."""
    first = [] if form.columns and not form.skip_header else next(rows, (0, []))[1]
    if form.trailing_delimiter and len(first) > 1 and not first[-1]:
        first = first[:-1]
    header = form.columns or tuple(name.strip() for name in first)
    twice = next((name for name, count in Counter(header).items() if count > 1), None)
    if twice is not None:
        raise Problem(0, ", line 1", f"names column '{twice}' twice")
    if not header:
        raise Problem(0, "", "has no header line")
    return header
