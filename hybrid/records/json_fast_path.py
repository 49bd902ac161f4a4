"""The JSON fast path: decodes many plain records at once, as columns.

It accepts JSON objects whose values already have the types of their columns, as nearly all do. It is many times faster
than decoding record by record. Every other message is left to the decoder, which alone gives reasons for a rejection.
Both must store the same values: `tests/records/test_json_fast_path.py` proves it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import orjson

from hybrid.config.table_config import TableSpec
from hybrid.errors import DataError
from hybrid.records.fields import UNFIT, Field, are_millis, read_millis, time_reader
from hybrid.schema.jsontext import DEPTH_MAX
from hybrid.schema.types import DataType
from hybrid.schema.values import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN

_WHOLE = frozenset({int, str, bool})
_WITH_FLOATS = _WHOLE | {float}
_HOLDERS = frozenset({list, dict})
_FLOATING = frozenset({DataType.FLOAT, DataType.DOUBLE})
# Types whose JSON values are stored unchanged.
_AS_THEY_ARE = {DataType.INT: int, DataType.LONG: int, DataType.DOUBLE: float, DataType.STRING: str,
                DataType.BOOLEAN: bool}  # fmt: skip
_RANGES = {DataType.INT: (INT_MIN, INT_MAX), DataType.LONG: (LONG_MIN, LONG_MAX)}


@dataclass
class Taken:
    """`columns`, in the schema's order, with an entry per message; entries at the places in `left` are meaningless."""

    columns: list[list[Any]]
    times_ms: list[int | None]
    left: set[int]


class PlainRecords:
    """The JSON fast path of one table; `fields` are its fields."""

    def __init__(self, spec: TableSpec, fields: Sequence[Field]) -> None:
        self._names = tuple(field.name for field in fields)
        self._columns = tuple(_Column.of(spec, field) for field in fields)
        self._time = self._names.index(spec.time_column) if spec.time_column else None
        self._to_millis = time_reader(spec)
        pick = itemgetter(*self._names)
        self._pick: Callable[[Any], tuple[Any, ...]] = pick if len(fields) > 1 else lambda record: (pick(record),)

    def take(self, payloads: Sequence[bytes | None]) -> Taken:
        """The columns of the records in messages' values; places that the decoder must judge are in `left`."""
        undecided: set[int] = set()
        rows = self._rows(payloads, undecided)
        columns: list[list[Any]] = [[] for _ in self._names]
        if rows:
            turned = zip(*rows, strict=True)
            columns = [column.take(values, undecided) for column, values in zip(self._columns, turned, strict=True)]
        return Taken(columns, self._times(columns, len(rows), undecided), undecided)

    def _rows(self, payloads: Sequence[bytes | None], left: set[int]) -> list[tuple[object, ...]]:
        try:
            # Each object is freed at once: keeping all of them costs more than parsing them.
            rows = list(map(self._pick, map(orjson.loads, payloads)))  # type: ignore[arg-type]
        except (ValueError, LookupError, TypeError):
            rows = [self._row(payload, place, left) for place, payload in enumerate(payloads)]
        left.update(place for place, payload in enumerate(payloads) if payload and _may_be_deep(payload))
        return rows

    def _row(self, payload: bytes | None, place: int, left: set[int]) -> tuple[object, ...]:
        try:
            record = orjson.loads(payload) if payload is not None else None
        except ValueError:
            record = None
        if not isinstance(record, dict):
            left.add(place)
            record = {}
        return tuple(map(record.get, self._names))

    def _times(self, columns: Sequence[list[Any]], count: int, left: set[int]) -> list[int | None]:
        if self._time is None:
            return [None] * count
        to_millis, times_ms = self._to_millis, list[int | None]()
        if not left and to_millis is read_millis and are_millis(columns[self._time]):
            return list(columns[self._time])
        for place, value in enumerate(columns[self._time]):
            try:
                times_ms.append(to_millis(value))
            except (DataError, *UNFIT):
                left.add(place)
                times_ms.append(None)
        return times_ms


@dataclass(frozen=True)
class _Column:
    """The fast path of one column. Values of type `of_type` within `limits` are stored unchanged.

    `takes` are the types that lose nothing in parsing. A number with a point loses its text, which counts for all but
    floating columns.
    """

    field: Field
    of_type: type | None
    takes: frozenset[type]
    limits: tuple[int, int] | None

    @classmethod
    def of(cls, spec: TableSpec, field: Field) -> _Column:
        spec_field = spec.schema.find(field.name)
        assert spec_field is not None
        kind = spec_field.data_type
        takes = _WITH_FLOATS if kind in _FLOATING and spec_field.sql_type is None else _WHOLE
        if spec_field.sql_type is not None or not spec_field.single_value:
            return cls(field, None, takes, None)
        return cls(field, _AS_THEY_ARE.get(kind), takes, _RANGES.get(kind))

    def take(self, values: Sequence[Any], left: set[int]) -> list[Any]:
        """The stored values. Adds the places of values that the decoder must judge to `left`."""
        if self.of_type is not None and set(map(type, values)) == {self.of_type}:
            limits = self.limits
            if limits is None or (limits[0] <= min(values) and max(values) <= limits[1]):
                return list(values)
        return [self._one(value, place, left) for place, value in enumerate(values)]

    def _one(self, value: Any, place: int, left: set[int]) -> Any:
        kind, field = type(value), self.field
        if value is None:
            if not (field.required or field.missing):
                return field.null
        elif kind in self.takes or (kind in _HOLDERS and self._all_taken(value)):
            try:
                return field.convert(value)
            except UNFIT:
                pass
        left.add(place)
        return None

    def _all_taken(self, value: list[object] | dict[str, object]) -> bool:
        """Whether a list or an object holds only nulls and values of the types in `takes`."""
        kinds = set(map(type, value.values() if isinstance(value, dict) else value))
        return kinds <= {*self.takes, type(None)}


def _may_be_deep(payload: bytes) -> bool:
    """Whether a message may nest deeper than the decoder allows; orjson allows more."""
    return len(payload) > DEPTH_MAX and payload.count(b"[") + payload.count(b"{") > DEPTH_MAX
