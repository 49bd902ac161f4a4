"""The files that bring a backfill's rows: a file, or every file of a folder, each in the format that its name says."""

from __future__ import annotations

from pathlib import Path

from hybrid.config.input_files import check_each, files_below
from hybrid.config.input_rules import InputRules
from hybrid.config.table_config import TableSpec
from hybrid.errors import DataError, NotFoundError
from hybrid.expression.path_patterns import is_hidden
from hybrid.files.inputs import DataFormat, InputFile, inspect
from hybrid.formats.csv_format import CsvFormat, multi_value_columns, text_columns

FORMATS = {
    ".json": DataFormat.JSON,
    ".jsonl": DataFormat.JSON,
    ".ndjson": DataFormat.JSON,
    ".csv": DataFormat.CSV,
    ".parquet": DataFormat.PARQUET,
    ".avro": DataFormat.AVRO,
    ".orc": DataFormat.ORC,
}


def inspect_input(
    spec: TableSpec, path: Path, rules: InputRules | None = None
) -> tuple[tuple[InputFile, ...], CsvFormat]:
    """The input's files in the order of their paths. NotFoundError, or DataError for one of another kind.

    RightError when `rules` do not allow one of them.
    """
    if rules is not None:
        rules.check(path)
    if not path.exists():
        raise NotFoundError(f"--input {path} does not exist.")
    found = files_below(path, rules) if path.is_dir() else [path]
    found = [one for one in found if not is_hidden(one.name)]
    if not found:
        raise DataError(f"--input {path} holds no files.")
    for one in found:
        if one.suffix.lower() not in FORMATS:
            known = ", ".join(FORMATS)
            raise DataError(
                f"{one}: what it holds cannot be told by its name; the names end in {known}.",
                hint="A job spec names a format: hybrid job run",
            )
    if rules is not None:
        check_each(rules, found)
    files = tuple(inspect(one, FORMATS[one.suffix.lower()]) for one in found)
    hollow = next((file for file in files if not file.bytes), None)
    if hollow is not None:  # rows of the window that no file has are removed
        raise DataError(
            f"{hollow.path} is empty (0 bytes); was it cut off? Nothing was planned.",
            hint="Take it away; a file that is meant to hold no rows is a CSV header, or [] as JSON.",
        )
    if rules is not None:
        check_each(rules, [Path(file.real) for file in files])
    return files, CsvFormat(multi_value=multi_value_columns(spec.schema), texts=text_columns(spec.schema))
