"""The tables and columns of the catalog, for completion."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from hybrid.config.table_config import Half
from hybrid.errors import HybridError, QueryError
from hybrid.sql.tables import table_and_half

_HALVES = (Half.OFFLINE, Half.REALTIME)
_FRESH_S = 10.0
_ALL_TABLES_MAX = 20  # without a FROM the columns of so many tables are offered

Ask = Callable[..., object]


class CatalogNames:
    """The tables and columns of a home or server. `ask(verb, **arguments)` fetches them; they are kept for seconds.

    Where they cannot be fetched, the last ones are used: completion raises no errors.
    """

    def __init__(self, ask: Ask, clock: Callable[[], float] = time.monotonic) -> None:
        self._ask, self._clock = ask, clock
        self._tables: Mapping[str, bool] = {}  # by name, whether it has both halves
        self._columns: dict[str, tuple[float, Sequence[str]]] = {}
        self._fetched_at: float | None = None

    def whole_tables(self) -> list[str]:
        """The names of the tables."""
        return list(self._fetched_tables())

    def tables(self) -> list[str]:
        """The names that FROM takes: tables, then the halves of those that have both."""
        tables = self._fetched_tables()
        return [*tables, *(f"{name}_{half}" for name, is_hybrid in tables.items() if is_hybrid for half in _HALVES)]

    def table_of(self, written: str) -> str | None:
        """The table that a name in FROM means, in any case and with or without its half; None for another name."""
        try:
            return table_and_half(written, self._fetched_tables())[0]
        except QueryError:
            return None

    def columns(self, tables: Sequence[str]) -> list[str]:
        """The columns of some tables; of all tables if none is named and they are few."""
        chosen = list(tables) or self.whole_tables()
        if not tables and len(chosen) > _ALL_TABLES_MAX:
            return []
        return list(dict.fromkeys(column for table in chosen for column in self._columns_of(table)))

    def _fetched_tables(self) -> Mapping[str, bool]:
        now = self._clock()
        if self._fetched_at is None or now - self._fetched_at > _FRESH_S:
            self._fetched_at = now
            found = self._fetch("table_list")
            if isinstance(found, list):
                self._tables = {table["name"]: len(table["halves"]) > 1 for table in found}
        return self._tables

    def _columns_of(self, table: str) -> Sequence[str]:
        now, known = self._clock(), self._columns.get(table)
        if known is not None and now - known[0] <= _FRESH_S:
            return known[1]
        found = self._fetch("table_show", table=table)
        columns = list(found["columns"]) if isinstance(found, dict) else known[1] if known is not None else []
        self._columns[table] = now, columns
        return columns

    def _fetch(self, verb: str, **arguments: str) -> object:
        try:
            return self._ask(verb, **arguments)
        except (HybridError, OSError):
            return None
