"""The physical layout of cached rows: ENUMs for texts of few values, compression unless memory suffices, indexes.

ENUMs group several times faster than texts do. Compressed columns take an eighth of the memory; scans of plain ones
take a tenth less, and looking up a few rows takes half.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from hybrid.config.table_config import TableSpec
from hybrid.query.connection import identifier, quoted
from hybrid.query.types import HIDDEN_TYPES, duckdb_type
from hybrid.schema.types import DataType
from hybrid.table.columns import OP, SEGMENT

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# An ENUM has at most so many texts.
_TEXTS_MAX = 200
# Approximate bytes of a value, and the share of the memory up to which a table is stored uncompressed.
_WIDTH, _PLAIN_SHARE = 16, 1 / 8
# An index pays where it selects at most one row in this many.
_SELECTIVE = 100
Texts = Mapping[str, Collection[str]]


def few_texts(
    connection: DuckDBPyConnection,
    spec: TableSpec,
    source: str,
    more: Texts,
    plain: Collection[str],
    rows_min: int,
) -> dict[str, frozenset[str]]:
    """The columns of `source` that hold few texts, with these texts and `more`; columns in `plain` are left out.

    None where `source` has fewer rows than `rows_min`.
    """
    names = [
        field.name
        for field in spec.schema.fields
        if field.data_type is DataType.STRING
        and field.single_value
        and field.name not in spec.schema.primary_key
        and field.name not in plain
    ]
    if not names:
        return {}
    counts = ", ".join(f"approx_count_distinct({identifier(name)})" for name in names)
    (rows, *distinct) = connection.execute(f"SELECT count(*), {counts} FROM {source}").fetchone() or (0,)
    few = [name for name, count in zip(names, distinct, strict=True) if count <= _TEXTS_MAX]
    if not few or rows < rows_min:
        return {}
    lists = ", ".join(f"list(DISTINCT {identifier(name)})" for name in few)
    row = connection.execute(f"SELECT {lists} FROM {source}").fetchone() or ()
    texts = {
        name: frozenset(text for text in (*(values or ()), *more.get(name, ())) if text is not None)
        for name, values in zip(few, row, strict=True)
    }
    return {name: values for name, values in texts.items() if values}


def fits_plain(spec: TableSpec, rows: int, bytes_max: int | None) -> bool:
    """Whether a table of so many rows may be stored uncompressed."""
    return bytes_max is None or rows * len(spec.schema.fields) * _WIDTH <= bytes_max * _PLAIN_SHARE


def definitions(spec: TableSpec, enums: Texts, plain: bool) -> str:
    """The column definitions of CREATE TABLE, hidden columns included.

    DuckDB sorts ENUM values by position, and texts by their bytes, as Python does. So the texts are sorted here.
    Hidden columns cannot be selected and are always compressed.
    """
    columns = []
    for field in spec.schema.fields:
        texts = ", ".join(quoted(text) for text in sorted(enums.get(field.name, ())))
        kind = f"ENUM({texts})" if texts else duckdb_type(field)
        how = " USING COMPRESSION uncompressed" if plain and field.single_value else ""
        columns.append(f"{identifier(field.name)} {kind}{how}")
    return ", ".join(
        [*columns, *(f"{name} {kind}" for name, kind in HIDDEN_TYPES.items() if name not in {SEGMENT, OP})]
    )


def indexed_columns(connection: DuckDBPyConnection, spec: TableSpec, relation: str, rows: int) -> Sequence[str]:
    """The columns to index: the key's, and those of Pinot's inverted indexes, where they are selective."""
    # Partial upsert combines rows before any filter that is not on their key.
    others = () if spec.folds else spec.index_columns
    columns = dict.fromkeys([*spec.schema.primary_key, *others])
    if not columns or not rows:
        return spec.primary_key
    counts = ", ".join(f"approx_count_distinct({identifier(name)})" for name in columns)
    row = connection.execute(f"SELECT {counts} FROM {relation}").fetchone() or ()
    return [
        name
        for name, distinct in zip(columns, row, strict=True)
        if (name in spec.primary_key and spec.picks_winners) or rows <= distinct * _SELECTIVE
    ]
