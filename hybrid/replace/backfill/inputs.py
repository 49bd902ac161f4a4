"""The input files of a backfill: one file, or every file of a folder. The suffix of its name gives a file's format."""

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
    """The input's files, sorted by path. NotFoundError when it does not exist, DataError for an unknown format.

    RightError when `rules` forbid one of the files.
    """
    if rules is not None:
        rules.check(path)
    if not path.exists():
        raise NotFoundError(f"--input {path} does not exist.")
    paths = files_below(path, rules) if path.is_dir() else [path]
    paths = [file_path for file_path in paths if not is_hidden(file_path.name)]
    if not paths:
        raise DataError(f"--input {path} holds no files.")
    for file_path in paths:
        if file_path.suffix.lower() not in FORMATS:
            endings = ", ".join(FORMATS)
            raise DataError(
                f"{file_path}: what it holds cannot be told by its name; the names end in {endings}.",
                hint="A job spec names a format: hybrid job run",
            )
    if rules is not None:
        check_each(rules, paths)
    files = tuple(inspect(file_path, FORMATS[file_path.suffix.lower()]) for file_path in paths)
    hollow = next((file for file in files if not file.bytes), None)
    if hollow is not None:  # rows of the window that are in no file are removed
        raise DataError(
            f"{hollow.path} is empty (0 bytes); was it cut off? Nothing was planned.",
            hint="Take it away; a file that is meant to hold no rows is a CSV header, or [] as JSON.",
        )
    if rules is not None:
        check_each(rules, [Path(file.real) for file in files])
    return files, CsvFormat(multi_value=multi_value_columns(spec.schema), texts=text_columns(spec.schema))
