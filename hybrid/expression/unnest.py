"""Nested records as flat ones: objects become fields, lists become rows. Pure.

After Pinot's ComplexTypeTransformer: objects are flattened first, also within the lists that are unnested; then the
lists are, parents before children; then prefixes are renamed. What differs loses nothing: a field that is to be
unnested and holds no list stays as it is, and the rows of a list are renamed too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hybrid.errors import DataError
from hybrid.schema.ingestion import ComplexTypes, ListsToJson
from hybrid.schema.jsontext import compact

# Lists of one message multiply, and so do long names of what is nested; nobody means a message that fills the memory.
ROWS_MAX, VALUES_MAX, NAME_MAX = 100_000, 5_000_000, 1000


class Unnester:
    """A config at work."""

    def __init__(self, config: ComplexTypes) -> None:
        self._config = config
        self._unnest = sorted(config.unnest)
        self._paths = frozenset(config.unnest)

    def rows(self, record: Mapping[str, object]) -> list[dict[str, object]]:
        """The flat records of a nested one, at least one. DataError when names collide, or there are too many."""
        flat = dict(record)
        self._flatten(flat, list(flat))
        found = [flat]
        for path in self._unnest:
            found = self._unnested(found, path)
        return [self._renamed(one) for one in found] if self._config.renames else found

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
                for key, one in value.items():
                    path = self._name(name, key)
                    record[path] = one
                    if isinstance(one, (dict, list, tuple)):
                        nested.append(path)
                self._flatten(record, nested)
            elif isinstance(value, (list, tuple)):
                record[name] = self._list(name, value)

    def _list(self, path: str, values: Iterable[object]) -> object:
        """A list with flat elements when it is to be unnested; else as it is, or as text."""
        values = list(values)
        if path in self._paths:
            return [self._element(path, one) if isinstance(one, dict) else one for one in values]
        lists = self._config.lists
        is_nested = bool(values) and isinstance(values[0], (dict, list, tuple))
        if lists is ListsToJson.ALL or (lists is ListsToJson.NON_PRIMITIVE and is_nested):
            try:
                return compact(values)
            except (ValueError, TypeError, RecursionError) as error:
                raise DataError(f"Field '{path}': the list cannot be written as JSON.") from error
        return values

    def _element(self, path: str, element: Mapping[str, Any]) -> dict[str, Any]:
        """An object of a list that is unnested, flat; its names are those below the list's path."""
        flat: dict[str, Any] = {}
        waiting = list(reversed(list(element.items())))
        while waiting:
            name, value = waiting.pop()
            if isinstance(value, dict):
                waiting += [(self._name(name, key), one) for key, one in reversed(list(value.items()))]
            elif isinstance(value, (list, tuple)):
                flat[name] = self._list(self._name(path, name), value)
            else:
                flat[name] = value
        return flat

    def _unnested(self, records: list[dict[str, Any]], path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        values = 0
        for record in records:
            value = record.get(path)
            if not isinstance(value, list):
                found.append(record)
                continue
            rest = {name: one for name, one in record.items() if name != path}
            values += len(value) * len(record)
            if len(found) + len(value) > ROWS_MAX or values > VALUES_MAX:
                raise DataError(f"The message would become more than {ROWS_MAX} rows, or {VALUES_MAX} values.")
            found += [{**rest, **self._fields(path, one)} for one in value] or [rest]
        return found

    def _fields(self, path: str, element: object) -> dict[str, Any]:
        if not isinstance(element, dict):
            return {path: element}
        return {self._name(path, name): value for name, value in element.items()}

    def _renamed(self, record: dict[str, Any]) -> dict[str, Any]:
        for prefix, other in self._config.renames.items():
            for name in [one for one in record if one.startswith(prefix)]:
                value, renamed = record.pop(name), other + name[len(prefix) :]
                if not renamed or record.get(renamed) is not None:
                    raise DataError(f"Field '{name}' cannot be renamed to '{renamed}': the record has one.")
                record[renamed] = value
        return record
