"""Parses JSON that is embedded in another text, such that errors of syntax and of meaning name its position there."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from hybrid.schema.document import Section
from hybrid.schema.jsontext import DEPTH_MAX, depth, parse_plain_json

# Tokens of a text that has been parsed as JSON before.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}:,]|[^\s\[\]{}:,"]++', re.DOTALL)

Fail = Callable[[int, str], NoReturn]


@dataclass(frozen=True)
class PlacedSection(Section):
    """A section whose errors and warnings begin with the position of their key in the file.

    `places` has positions by path (`connectors[0].transport.name`); a path without one has the position of its parent.
    """

    places: Mapping[str, str] = field(default_factory=dict)

    def at(self, key: str) -> str:
        """The place and the path of `key`: `line 20, column 7, connectors[0].paused`."""
        path = Section.at(self, key)
        nearest = _nearest(self.places, path)
        return f"{self.places[nearest]}, {path}" if nearest else path

    def section(self, key: str) -> Section:
        """The object at `key`, with positions."""
        path = Section.at(self, key)
        return PlacedSection(Section.section(self, key).doc, self.source, path, (self, key), self.places)

    def sections(self, key: str) -> Iterator[Section]:
        """The objects in the list at `key`, with positions."""
        for position, item in enumerate(Section.sections(self, key)):
            yield PlacedSection(item.doc, self.source, Section.at(self, f"{key}[{position}]"), places=self.places)


def parse_placed(text: str, path: str, fail: Fail) -> tuple[object, dict[str, int]]:
    """The value of a JSON text, and the offset of every key and element by its path; `path` is that of the whole value.

    `fail` raises an error at an offset: for invalid JSON, too deep nesting, or a repeated key of an object.
    """
    try:
        value = _load(text)
    except json.JSONDecodeError as error:
        near = text[error.pos : error.pos + 30].split("\n")[0].strip()
        fail(error.pos, f"is not JSON: {error.msg}{f', here: {near}' if near else ''}.")
    except ValueError as error:
        fail(0, f"is not JSON: {error}.")
    places: dict[str, int] = {}
    _Walk(text, places, fail).value(path)
    return value, places


def lines_of(text: str) -> dict[str, int]:
    """The line of every key and element of a JSON text by its path, counted from 1. ValueError for invalid JSON."""
    offsets = parse_placed(text, "", _raise)[1]
    breaks = [match.start() for match in re.finditer("\n", text)]
    return {path.removeprefix("."): bisect_left(breaks, offset) + 1 for path, offset in offsets.items() if path}


def nearest_line(lines: Mapping[str, int], path: str) -> int | None:
    """The line of a path, or of its nearest parent that has one; None where none has."""
    return lines.get(_nearest(lines, path))


def _nearest(places: Mapping[str, object], path: str) -> str:
    """A path, or its nearest parent, that is one of `places`; empty where none is."""
    while path and path not in places:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return path


def _raise(offset: int, message: str) -> NoReturn:
    raise ValueError(message)


def _load(text: str) -> object:
    if depth(text) > DEPTH_MAX:
        raise ValueError(f"it nests deeper than {DEPTH_MAX} levels")
    return parse_plain_json(text)


class _Walk:
    """A single pass over the tokens of a JSON text, which records the offset of each key and element."""

    def __init__(self, text: str, places: dict[str, int], fail: Fail) -> None:
        self._tokens = iter(_TOKEN.finditer(text))
        self._places = places
        self._fail = fail

    def value(self, path: str) -> None:
        self._value(path, next(self._tokens))

    def _value(self, path: str, token: re.Match[str]) -> None:
        self._places.setdefault(path, token.start())
        if token[0] == "{":
            self._object(path)
        elif token[0] == "[":
            self._list(path)

    def _object(self, path: str) -> None:
        seen = set()
        for token in self._tokens:
            if token[0] == "}":
                return
            if token[0] == ",":
                continue
            key = json.loads(token[0])
            if key in seen:
                self._fail(token.start(), f"has the key {token[0]} twice in one object. Remove one.")
            seen.add(key)
            self._places.setdefault(f"{path}.{key}", token.start())
            next(self._tokens)  # the colon
            self._value(f"{path}.{key}", next(self._tokens))

    def _list(self, path: str) -> None:
        position = 0
        for token in self._tokens:
            if token[0] == "]":
                return
            if token[0] != ",":
                self._value(f"{path}[{position}]", token)
                position += 1
