"""Flattens nested records: objects become fields, lists become rows. Pure.

After Pinot's ComplexTypeTransformer: objects are flattened first, also within unnested lists; then lists are unnested,
parents before children; then prefixes are renamed. Two differences preserve data: a field in `fieldsToUnnest` without
a list is kept unchanged, and the rows of a list are renamed, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hybrid.errors import DataError
from hybrid.schema.ingestion import ComplexTypes, ListsToJson
from hybrid.schema.jsontext import compact

# The lists of a message multiply, and so do long names of nested fields: a message must not fill the memory.
ROWS_MAX, VALUES_MAX, NAME_MAX = 100_000, 5_000_000, 1000


class Unnester:
    """Flattens records by a config."""

    def __init__(self, config: ComplexTypes) -> None:
        self._config = config
        self._unnest = sorted(config.unnest)
        self._paths = frozenset(config.unnest)

    def rows(self, record: Mapping[str, object]) -> list[dict[str, object]]:
        """The flat records of a nested record, at least one. DataError when names collide, or there are too many."""
        flat = dict(record)
        self._flatten(flat, list(flat))
        flat_records = [flat]
        for path in self._unnest:
            flat_records = self._unnested(flat_records, path)
        return [self._renamed(flat_record) for flat_record in flat_records] if self._config.renames else flat_records

    def _name(self, *parts: str) -> str:
        name = self._config.delimiter.join(parts)
        if len(name) > NAME_MAX:
            raise DataError(
                f"Field '{name[:50]}...': the names of nested fields are longer than {NAME_MAX} characters."
            )
        return name

    def _flatten(self, record: dict[str, Any], names: Iterable[str]) -> None:
        for name in names:
            value = record.get(name)
            if isinstance(value, dict):
                del record[name]
                nested = []
                for key, item in value.items():
                    path = self._name(name, key)
                    record[path] = item
                    if isinstance(item, (dict, list, tuple)):
                        nested.append(path)
                self._flatten(record, nested)
            elif isinstance(value, (list, tuple)):
                record[name] = self._list(name, value)

    def _list(self, path: str, values: Iterable[object]) -> object:
        """A list: with flat elements if it is unnested, else unchanged, or as JSON text."""
        values = list(values)
        if path in self._paths:
            return [self._element(path, item) if isinstance(item, dict) else item for item in values]
        lists = self._config.lists
        is_nested = bool(values) and isinstance(values[0], (dict, list, tuple))
        if lists is ListsToJson.ALL or (lists is ListsToJson.NON_PRIMITIVE and is_nested):
            try:
                return compact(values)
            except (ValueError, TypeError, RecursionError) as error:
                raise DataError(f"Field '{path}': the list cannot be written as JSON.") from error
        return values

    def _element(self, path: str, element: Mapping[str, Any]) -> dict[str, Any]:
        """An object of an unnested list, flattened; its names are relative to the list's path."""
        flat: dict[str, Any] = {}
        stack = list(reversed(list(element.items())))
        while stack:
            name, value = stack.pop()
            if isinstance(value, dict):
                stack += [(self._name(name, key), item) for key, item in reversed(list(value.items()))]
            elif isinstance(value, (list, tuple)):
                flat[name] = self._list(self._name(path, name), value)
            else:
                flat[name] = value
        return flat

    def _unnested(self, records: list[dict[str, Any]], path: str) -> list[dict[str, Any]]:
        flat_records: list[dict[str, Any]] = []
        values = 0
        for record in records:
            value = record.get(path)
            if not isinstance(value, list):
                flat_records.append(record)
                continue
            rest = {name: item for name, item in record.items() if name != path}
            values += len(value) * len(record)
            if len(flat_records) + len(value) > ROWS_MAX or values > VALUES_MAX:
                raise DataError(f"The message would become more than {ROWS_MAX} rows, or {VALUES_MAX} values.")
            flat_records += [{**rest, **self._fields(path, item)} for item in value] or [rest]
        return flat_records

    def _fields(self, path: str, element: object) -> dict[str, Any]:
        if not isinstance(element, dict):
            return {path: element}
        return {self._name(path, name): value for name, value in element.items()}

    def _renamed(self, record: dict[str, Any]) -> dict[str, Any]:
        for prefix, other in self._config.renames.items():
            for name in [name_before for name_before in record if name_before.startswith(prefix)]:
                value, renamed = record.pop(name), other + name[len(prefix) :]
                if not renamed or record.get(renamed) is not None:
                    raise DataError(f"Field '{name}' cannot be renamed to '{renamed}': the record has one.")
                record[renamed] = value
        return record
