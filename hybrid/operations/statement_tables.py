"""The tables that a statement names, before it is planned: they decide which server can answer it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half
from hybrid.operations.catalog_statements import described_table

if TYPE_CHECKING:
    from hybrid.home.home import Home
    from hybrid.sql.parameters import Parameters

_WORD = re.compile(r"\w+", re.ASCII)


@dataclass(frozen=True)
class StatementTables:
    """The names of a statement's tables, each once, in the order of its text, and the options that it sets."""

    names: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


def may_name(sql: str, tables: frozenset[str]) -> bool:
    """Whether a statement has a word that is the name of one of these tables. False is certain, without parsing."""
    return not _spellings(tables).isdisjoint(_WORD.findall(sql.lower()))


@lru_cache(maxsize=4)
def _spellings(tables: frozenset[str]) -> frozenset[str]:
    """The names of tables, and of their halves, in lower case."""
    names = [name.lower() for name in tables]
    return frozenset([*names, *(f"{name}_{half.lower()}" for name in names for half in Half)])


def tables_of_statement(sql: str, params: Parameters | None, tables: Collection[str]) -> StatementTables:
    """The tables of a statement among `tables`. QueryError when it cannot be parsed, or names another table (190)."""
    from hybrid.sql.parameters import bind
    from hybrid.sql.statement import parse_statement
    from hybrid.sql.tables import resolve_tables, table_and_half

    described = described_table(sql)
    if described is not None:
        return StatementTables((table_and_half(described, tables)[0],))
    statement = parse_statement(sql, bind(sql, params))
    refs = resolve_tables(statement.tree, tables)
    return StatementTables(tuple(dict.fromkeys(ref.table for ref in refs)), statement.options)


def refuse_remote(home: Home, sql: str, params: Parameters | None) -> None:
    """NotFoundError that names the servers of a remote table, if a statement names one.

    QueryError (190) when it names a table that no server has.
    """
    remote = home.remote.names()
    if remote and may_name(sql, remote):
        for name in tables_of_statement(sql, params, home.listed_names()).names:
            if name in remote:
                raise home.unknown_table(name)
