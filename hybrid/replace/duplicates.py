"""Keys that a job's input contains twice. On an upsert table nothing decides which of two such rows is right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hybrid.config.table_config import ARRIVED, TableSpec
from hybrid.errors import DataError
from hybrid.files.inputs import InputFile
from hybrid.formats.csv_format import CsvFormat
from hybrid.lake.collect import collect_rows
from hybrid.lake.layout import quoted
from hybrid.replace.places import place_in_files
from hybrid.replace.stage import StagedRows
from hybrid.runtime.json_values import json_value
from hybrid.table import columns

_FIRST, _SECOND, _COUNT, _OFFSETS = "_hy_first", "_hy_second", "_hy_count", "_hy_offsets"


def refuse_duplicate_keys(
    spec: TableSpec, files: Sequence[InputFile], csv_format: CsvFormat, staged: StagedRows
) -> None:
    """DataError, naming both places, when two rows have the same primary key and the same comparison value.

    Rows of a key with different comparison values are its versions. Where arrival is the comparison value, rows of
    files all arrive at once, so two rows of a key are refused. A dedup table shows the first of them. Where rows are
    combined (`spec.folds`), all of them count, in file order.
    """
    if spec.upsert is None or not spec.picks_winners or spec.upsert.first_wins:
        return
    has_values = spec.upsert.comparison_column != ARRIVED
    names = tuple(dict.fromkeys([*spec.primary_key, *(spec.upsert.comparison_columns if has_values else ())]))
    pair = _first_pair(staged, names)
    if pair is None:
        return
    first, second = (place_in_files(files, csv_format, pair[side]) for side in (_FIRST, _SECOND))
    values = ", ".join(f"{name} {json_value(pair[name])}" for name in names)
    what = "the key and the comparison value" if has_values else "the key"
    raise DataError(
        f"{second}: the row has {what} ({values}) of {first}; nothing tells which of the two is right. Nothing was "
        "changed.",
        hint="Keep one of them and run the job again.",
    )


def _first_pair(staged: StagedRows, names: Sequence[str]) -> dict[str, Any] | None:
    from pyspark.sql import functions as F

    offset = F.sort_array(F.collect_list(columns.OFFSET))
    keyed = staged.frame.groupBy(*(quoted(name) for name in names))
    pairs = keyed.agg(F.count("*").alias(_COUNT), offset.alias(_OFFSETS)).where(f"{_COUNT} > 1")
    ends = (F.col(_OFFSETS)[place].alias(name) for place, name in enumerate((_FIRST, _SECOND)))
    first = collect_rows(pairs.select(*(quoted(name) for name in names), *ends).orderBy(_SECOND).limit(1))
    return first[0] if first else None
