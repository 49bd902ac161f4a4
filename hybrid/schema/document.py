"""Reads objects of a user's document, with errors that name the file, the place, the value and the accepted values."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import NoReturn

from hybrid.errors import SpecError, meant, suggestion
from hybrid.schema.jsontext import shortened
from hybrid.schema.secrets import HIDDEN, value_without_secrets

_HALVES = ("REALTIME", "OFFLINE", "realtime", "offline")
_BESIDE = ("tableName", "schema", "unrecognizedProperties", "warnings")
# The least similarity for a suggestion: keys that are alike by chance are no misspellings.
_CLOSE = 0.75
# Keys of Pinot without effect here, for which nothing is suggested.
_OF_PINOT = frozenset({"quota", "query", "tierConfigs", "tableSamplers", "queryConfig"})


@dataclass(frozen=True)
class Section:
    """A JSON object in the file `source`, at `path` (empty: the document itself).

    Paths are like `segmentsConfig.timeColumnName`, `dimensionFieldSpecs[1].dataType`.
    """

    doc: dict[str, object]
    source: str
    path: str = ""
    # The section that this one is part of, and its key there.
    _within: tuple[Section, str] | None = field(default=None, repr=False, compare=False)

    def at(self, key: str) -> str:
        """The path of `key` in this section."""
        return f"{self.path}.{key}" if self.path else key

    def fail(self, key: str, message: str, *, hint: str | None = None) -> NoReturn:
        """Raise a SpecError that points at `key`."""
        raise SpecError.at(self.source, self.at(key), message, hint=hint)

    def has(self, key: str) -> bool:
        """Whether `key` has a value that is neither empty nor off: not null, "", {}, [] or false."""
        return self.doc.get(key) not in (None, "", {}, [], False)

    def section(self, key: str) -> Section:
        """The object at `key`; an empty one when it is missing or null."""
        value = self.doc.get(key)
        if value is None:
            value = {}
        if not isinstance(value, dict):
            self.fail(key, f"{self._shown(key, value)} is not an object: write {{...}}.")
        return Section(value, self.source, self.at(key), (self, key))

    def sections(self, key: str) -> Iterator[Section]:
        """The objects in the list at `key`; none when it is missing or null."""
        value = self.doc.get(key)
        if value is not None and not isinstance(value, list):
            self.fail(key, f"{self._shown(key, value)} is not a list: write [...].")
        for position, item in enumerate(value or []):
            place = f"{key}[{position}]"
            if not isinstance(item, dict):
                self.fail(place, f"{self._shown(key, item)} is not an object: write {{...}}.")
            yield Section(item, self.source, self.at(place))

    def text(self, key: str, default: str | None = None) -> str:
        """The text at `key`, stripped. SpecError when it is missing, unless there is a default, or no text."""
        value = self.doc.get(key)
        if value is None and default is not None:
            return default
        if value is None:
            self.fail(key, f"is missing.{self.misspelling(key)}")
        if not isinstance(value, str) or not value.strip():
            self.fail(key, f"{self._shown(key, value)} is not a text.")
        return value.strip()

    def texts(self, key: str) -> tuple[str, ...]:
        """The list of texts at `key`; a single text is a list of one; empty when it is missing."""
        value = self.doc.get(key)
        items = [value] if isinstance(value, str) else value if value is not None else []
        if not isinstance(items, list) or not all(isinstance(item, str) and item for item in items):
            self.fail(key, f"{self._shown(key, value)} is not a list of texts.")
        return tuple(items)

    def boolean(self, key: str, default: bool = False) -> bool:
        """The boolean at `key`, also as text: Pinot's own files write "true"."""
        value = self.doc.get(key)
        if value is None:
            return default
        truth = {"true": True, "false": False}.get(str(value).strip().lower())
        if truth is None:
            self.fail(key, f"{self._shown(key, value)} is neither true nor false.")
        return truth

    def whole(self, key: str, default: int, low: int = 0) -> int:
        """The whole number at `key`, from `low` on; it may be written as text."""
        value = self.doc.get(key)
        if value is None:
            return default
        text = str(value).strip()
        if isinstance(value, bool) or not text.isascii() or not text.isdigit() or len(text) > 18 or int(text) < low:
            self.fail(key, f"{self._shown(key, value)} is not a whole number from {low} on.")
        return int(text)

    def choice(self, key: str, known: Collection[str], default: str | None = None, *, any_case: bool = True) -> str:
        """The text at `key`, which must be in `known`, in the spelling there."""
        text = self.text(key, default)
        for word in known:
            if word == text or (any_case and word.lower() == text.lower()):
                return word
        near = suggestion(text, known) or suggestion(text.upper(), known)
        self.fail(key, f"'{self._text_shown(key, text)}' is not known.{near} Known are: {', '.join(known)}.")

    def unknown(self, known: Collection[str]) -> Iterator[str]:
        """One warning for each key that is not in `known`."""
        for key in self.doc:
            if key not in known and self.doc[key] not in (None, "", {}, []):
                # Keys of YAML need not be texts.
                near = "" if key in _OF_PINOT else suggestion(str(key), known, _CLOSE)
                yield f"{self.source}: {self.at(key)}: this key is not implemented and has no effect.{near}"

    def misspelling(self, key: str) -> str:
        """` Is 'moed' meant?` for a missing key that another one is close to, here or where this section is missing."""
        if not self.doc and self._within is not None:
            section, key = self._within
            return section.misspelling(key)
        return meant(key, [name for name in map(str, self.doc) if name != key], _CLOSE)

    def _shown(self, key: str, value: object) -> str:
        """A value for a message, with its secrets hidden."""
        return shown(value_without_secrets(key, value))

    def _text_shown(self, key: str, text: str) -> str:
        return HIDDEN if value_without_secrets(key, text) == HIDDEN else text


def configs_in(doc: dict[str, object]) -> list[dict[str, object]]:
    """The table configs in a document: itself, or those of the halves in an answer of this server or of Pinot.

    `GET /tables/{table}` has the halves, `/tables/validate` also warnings, `GET /tableConfigs/{table}` also the table's
    name and its schema.
    """
    halves = [doc[key] for key in _HALVES if doc.get(key) is not None]
    if "tableType" in doc or not halves or not set(doc) <= {*_HALVES, *_BESIDE}:
        return [doc]
    return [value for value in halves if isinstance(value, dict)] if all(isinstance(v, dict) for v in halves) else [doc]


def shown(value: object) -> str:
    """A value for a message, at most 100 characters: a text in quotes, all else as the document's JSON writes it."""
    try:
        text = repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except (ValueError, TypeError, RecursionError):  # YAML has values that JSON lacks, dates for example
        text = repr(value)
    return shortened(text, 100)
