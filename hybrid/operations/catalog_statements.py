"""SHOW TABLES, SHOW COLUMNS and DESCRIBE: statements about tables, answered from their definitions."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from hybrid.errors import NotFoundError, QueryError

if TYPE_CHECKING:
    from hybrid.config.table_config import TableSpec
    from hybrid.home.home import Home
    from hybrid.query.result import QueryResult

_NAME = r'(?:"(?P<quoted>[^"]{1,200})"|(?P<plain>[A-Za-z0-9_.-]{1,200}))'
_STATEMENT = re.compile(
    rf"\s*(?:(?P<tables>SHOW\s+TABLES)|(?:SHOW\s+COLUMNS\s+(?:FROM|IN)|DESC(?:RIBE)?(?:\s+TABLE)?)\s+{_NAME})\s*;?\s*",
    re.IGNORECASE,
)


def answer_from_definitions(home: Home, sql: str) -> QueryResult | None:
    """The answer to a statement about tables; None for any other statement. QueryError (190) for an unknown table."""
    from hybrid.query.result import QueryResult

    match = _STATEMENT.fullmatch(sql) if len(sql) <= 1000 else None  # other statements are long
    if match is None:
        return None
    if match["tables"]:
        rows = [(spec.name, ", ".join(spec.half_names)) for spec in home.listed_specs()]
        return QueryResult(("table", "halves"), ("STRING", "STRING"), rows)
    try:
        spec = _spec(home, match["quoted"] or match["plain"])
    except NotFoundError as error:
        hint = error.hint or "SHOW TABLES lists them."
        raise QueryError(str(error), pinot_code=error.pinot_code, hint=hint) from error
    return QueryResult(
        ("column", "type", "role"),
        ("STRING", "STRING", "STRING"),
        [
            (field.name, field.type_name, column_role(field.name, spec.schema.primary_key, spec.time_column))
            for field in spec.schema.fields
        ],
    )


def described_table(sql: str) -> str | None:
    """The name in SHOW COLUMNS or DESCRIBE, as it is written; None for any other statement."""
    match = _STATEMENT.fullmatch(sql) if len(sql) <= 1000 else None
    return None if match is None else match["quoted"] or match["plain"]


def _spec(home: Home, name: str) -> TableSpec:
    """The definition of a table, or of the table that a half's name means."""
    from hybrid.config.table_halves import raw_table_name

    return home.spec(name if name in home.table_names() else raw_table_name(name))


def column_role(column: str, primary_key: Collection[str], time_column: str | None) -> str | None:
    """What a table uses a column for: `primary key`, `time`, both or nothing."""
    roles = ["primary key"] * (column in primary_key) + ["time"] * (column == time_column)
    return ", ".join(roles) or None
