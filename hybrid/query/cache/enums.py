"""Text columns of few texts lie as ENUM, which group several times faster than texts do."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from hybrid.query.connection import identifier, quoted
from hybrid.spec.table_config import TableSpec
from hybrid.spec.types import DataType

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# At most so many texts, on tables where that pays.
_TEXTS_MAX, _ENUM_ROWS_MIN = 200, 20_000
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


def laid_columns(spec: TableSpec, enums: Texts) -> list[str]:
    """The user's columns as they are laid. DuckDB sorts ENUMs by place, and texts by their bytes, as Python does."""
    found = []
    for field in spec.schema.fields:
        name = identifier(field.name)
        texts = ", ".join(quoted(text) for text in sorted(enums.get(field.name, ())))
        found.append(f"{name}::ENUM({texts}) AS {name}" if texts else name)
    return found
