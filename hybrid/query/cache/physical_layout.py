"""How rows lie in the cache: texts of few values as ENUM, what is asked for uncompressed if there is room, indexes.

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

# At most so many texts, on tables where that pays.
_TEXTS_MAX, _ENUM_ROWS_MIN = 200, 20_000
# Bytes of a value, about, and the share of the memory that one table may take to lie uncompressed.
_WIDTH, _PLAIN_SHARE = 16, 1 / 8
# An index is of use where it leaves one row in this many.
_SELECTIVE = 100
Texts = Mapping[str, Collection[str]]


def few_texts(
    connection: DuckDBPyConnection, spec: TableSpec, source: str, more: Texts, plain: Collection[str]
) -> dict[str, frozenset[str]]:
    """The columns of `source` that hold few texts, and which, `more` included; those in `plain` stay texts."""
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
    few = [name for name, one in zip(names, distinct, strict=True) if one <= _TEXTS_MAX]
    if not few or rows < _ENUM_ROWS_MIN:
        return {}
    lists = ", ".join(f"list(DISTINCT {identifier(name)})" for name in few)
    found = connection.execute(f"SELECT {lists} FROM {source}").fetchone() or ()
    texts = {
        name: frozenset(one for one in (*(values or ()), *more.get(name, ())) if one is not None)
        for name, values in zip(few, found, strict=True)
    }
    return {name: one for name, one in texts.items() if one}


def fits_plain(spec: TableSpec, rows: int, bytes_max: int | None) -> bool:
    """Whether a table of so many rows may lie uncompressed."""
    return bytes_max is None or rows * len(spec.schema.fields) * _WIDTH <= bytes_max * _PLAIN_SHARE


def definitions(spec: TableSpec, enums: Texts, plain: bool) -> str:
    """The user's columns and the hidden ones, as CREATE TABLE takes them.

    DuckDB sorts ENUMs by place, and texts by their bytes, as Python does. Nobody asks for hidden columns: they are
    compressed in any case.
    """
    found = []
    for field in spec.schema.fields:
        texts = ", ".join(quoted(text) for text in sorted(enums.get(field.name, ())))
        kind = f"ENUM({texts})" if texts else duckdb_type(field)
        how = " USING COMPRESSION uncompressed" if plain and field.single_value else ""
        found.append(f"{identifier(field.name)} {kind}{how}")
    return ", ".join([*found, *(f"{name} {kind}" for name, kind in HIDDEN_TYPES.items() if name not in {SEGMENT, OP})])


def indexed_columns(connection: DuckDBPyConnection, spec: TableSpec, relation: str, rows: int) -> Sequence[str]:
    """The key's columns and those of Pinot's inverted indexes, where they tell the rows of a relation apart."""
    # Rows are folded before any filter that is not on their key.
    others = () if spec.folds else spec.index_columns
    wanted = dict.fromkeys([*spec.schema.primary_key, *others])
    if not wanted or not rows:
        return spec.primary_key
    counts = ", ".join(f"approx_count_distinct({identifier(name)})" for name in wanted)
    found = connection.execute(f"SELECT {counts} FROM {relation}").fetchone() or ()
    return [
        name
        for name, distinct in zip(wanted, found, strict=True)
        if (name in spec.primary_key and spec.picks_winners) or rows <= distinct * _SELECTIVE
    ]
