"""Sample rows of a difference as a table: key columns, and what changes, `fare 763 -> 7.63`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hybrid.cli.cells import CellKind, Row, View, text
from hybrid.cli.terminal.readable import without_zeros

_CHANGE, _DIFFERENCE = "change", "difference"
_VALUE_MAX, _CONTEXT = 60, 12


def difference_table(samples: Sequence[Row], keys: Sequence[str], types: Mapping[str, str]) -> tuple[list[Row], View]:
    """The rows and columns that show samples (`change`, `before`, `after`). `types` are data types by column."""
    shown = [name for name in keys if name not in (_CHANGE, _DIFFERENCE)]
    rows = [_row(sample, shown, types) for sample in samples]
    kinds = {_DIFFERENCE: CellKind.PROSE}
    return rows, View((_CHANGE, *shown, _DIFFERENCE), kinds=kinds)


def _row(sample: Row, keys: Sequence[str], types: Mapping[str, str]) -> Row:
    before, after = _fields(sample.get("before")), _fields(sample.get("after"))
    row = after or before
    differences = _changes(before, after, types) if before and after else _values(row, keys, types)
    shown = {name: _shown(row.get(name), types.get(name)) for name in keys}
    return {_CHANGE: sample.get(_CHANGE), **shown, _DIFFERENCE: ", ".join(differences)}


def _fields(row: Any) -> Mapping[str, Any]:
    return row if isinstance(row, Mapping) else {}


def _changes(before: Mapping[str, Any], after: Mapping[str, Any], types: Mapping[str, str]) -> Iterator[str]:
    for name, new in after.items():
        old = before.get(name)
        if old != new:
            yield f"{name} {' -> '.join(_apart(*(_shown(value, types.get(name)) for value in (old, new))))}"


def _values(row: Mapping[str, Any], keys: Sequence[str], types: Mapping[str, str]) -> Iterator[str]:
    for name, value in row.items():
        if name not in keys and value is not None:
            yield f"{name} {_excerpt(_shown(value, types.get(name)), 0)}"


def _shown(value: object, data_type: str | None) -> str:
    """A value as text: NULL for None, decimals without trailing zeros."""
    if value is None:
        return "NULL"
    shown = without_zeros(str(value)) if data_type == "BIG_DECIMAL" else None
    return text(value) if shown is None else shown


def _apart(old: str, new: str) -> tuple[str, str]:
    """Two texts, long ones from shortly before the place where they differ."""
    same = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    start = max(0, same - _CONTEXT) if max(len(old), len(new)) > _VALUE_MAX else 0
    return _excerpt(old, start), _excerpt(new, start)


def _excerpt(value: str, start: int) -> str:
    """Up to `_VALUE_MAX` characters from `start` on, with ... where something is left out."""
    part = value[start : start + _VALUE_MAX]
    return f"{'...' if start else ''}{part}{'...' if start + _VALUE_MAX < len(value) else ''}"
