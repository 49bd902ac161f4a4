"""The differences between two results of one statement, such as before and after a correction.

Rows are matched by a key: the columns whose values are unique in both results, and which most rows have in common.
Results without such columns are compared as bags of rows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hybrid.errors import UsageError
from hybrid.progress import counted

ROWS_MAX = 10_000
_COLUMNS_MAX = 12  # of which a key may begin
NUMERIC = frozenset({"INT", "LONG", "FLOAT", "DOUBLE", "BIG_DECIMAL"})  # types whose values are numbers
Row = Sequence[Any]
Places = tuple[int, ...]


class RowChange(StrEnum):
    """What became of a row."""

    SAME = "same"
    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"


@dataclass(frozen=True)
class RowPair:
    """A row before and after; `places` are the columns whose values differ."""

    change: RowChange
    before: Row | None
    after: Row | None
    places: Places = ()


@dataclass(frozen=True)
class ResultDifference:
    """All rows of two results, in the order of the second; rows that are only in the first come last.

    `key` names the columns by which rows were matched; None: whole rows were compared.
    """

    columns: tuple[str, ...]
    types: tuple[str, ...]
    key: tuple[str, ...] | None
    pairs: tuple[RowPair, ...]

    def count(self, change: RowChange) -> int:
        """The number of rows with this change."""
        return sum(pair.change is change for pair in self.pairs)

    @property
    def differs(self) -> bool:
        """Whether any row differs."""
        return any(pair.change is not RowChange.SAME for pair in self.pairs)

    @property
    def sentence(self) -> str:
        """What differs, with numbers."""
        if not self.differs:
            return f"No difference: {counted(len(self.pairs), 'row')}, equal before and after."
        words = {RowChange.CHANGED: "changed", RowChange.ADDED: "added", RowChange.REMOVED: "removed"}
        told = [f"{self.count(change):,} {word}" for change, word in words.items() if self.count(change)]
        return f"Rows of the result: {', '.join(told)}, {self.count(RowChange.SAME):,} equal."


def result_difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> ResultDifference:
    """Compare two results, each with `columns`, `types` and `rows`. UsageError for results that cannot be compared."""
    if before["columns"] != after["columns"]:
        raise UsageError(
            "The statement has other columns before than after, so its results cannot be compared.",
            hint="Name the columns instead of *",
        )
    rows = max(len(before["rows"]), len(after["rows"]))
    if rows > ROWS_MAX:
        raise UsageError(
            f"The statement returns {rows:,} rows; at most {ROWS_MAX:,} are compared.",
            hint="Aggregate with GROUP BY, or add a LIMIT with ORDER BY",
        )
    columns, types = tuple(after["columns"]), tuple(after["types"])
    places = _key(types, before["rows"], after["rows"])
    if places is None:
        return ResultDifference(columns, types, None, _as_bags(before["rows"], after["rows"]))
    pairs = _by_key(places, before["rows"], after["rows"])
    return ResultDifference(columns, types, tuple(columns[place] for place in places), pairs)


def _key(types: Sequence[str], before: Sequence[Row], after: Sequence[Row]) -> Places | None:
    """The columns that identify a row in both results: of those which match most rows, the first."""
    best, most = None, -1
    for places in _candidates(types):
        old, new = {_values(row, places) for row in before}, {_values(row, places) for row in after}
        if len(old) == len(before) and len(new) == len(after) and len(old & new) > most:
            best, most = places, len(old & new)
    return best


def _candidates(types: Sequence[str]) -> list[Places]:
    words = tuple(place for place, kind in enumerate(types) if kind not in NUMERIC)
    shown = range(min(len(types), _COLUMNS_MAX))
    prefixes = [tuple(range(place + 1)) for place in shown]
    return list(dict.fromkeys([words, *prefixes, *((place,) for place in shown)]))


def _by_key(places: Places, before: Sequence[Row], after: Sequence[Row]) -> tuple[RowPair, ...]:
    old = {_values(row, places): row for row in before}
    pairs = [_pair(old.pop(_values(row, places), None), row) for row in after]
    return (*pairs, *(RowPair(RowChange.REMOVED, row, None) for row in old.values()))


def _pair(before: Row | None, after: Row) -> RowPair:
    if before is None:
        return RowPair(RowChange.ADDED, None, after)
    differing = tuple(place for place, (old, new) in enumerate(zip(before, after, strict=True)) if old != new)
    return RowPair(RowChange.CHANGED if differing else RowChange.SAME, before, after, differing)


def _as_bags(before: Sequence[Row], after: Sequence[Row]) -> tuple[RowPair, ...]:
    left = Counter(_values(row) for row in before)
    pairs = []
    for row in after:
        values = _values(row)
        known = left[values] > 0
        left[values] -= known
        pairs.append(RowPair(RowChange.SAME if known else RowChange.ADDED, row if known else None, row))
    for row in before:
        values = _values(row)
        if left[values] > 0:
            left[values] -= 1
            pairs.append(RowPair(RowChange.REMOVED, row, None))
    return tuple(pairs)


def _values(row: Row, places: Places | None = None) -> str:
    return json.dumps(list(row) if places is None else [row[place] for place in places])
