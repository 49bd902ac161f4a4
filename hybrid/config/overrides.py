"""Loads JSON files as documents, and applies `--set`, which changes a value without editing the file."""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

from hybrid.errors import NotFoundError, SpecError, UsageError, suggestion
from hybrid.schema.document import shown
from hybrid.schema.jsontext import DEPTH_MAX, depth, finite_float

Document = tuple[dict[str, object], str]

_SHOWN_MAX = 12
_FREE_KEYS = ["metadata", "customConfigs"]  # a config without free keys may lack these objects


def load_json(path: str | Path) -> dict[str, object]:
    """The JSON object in the file `path`.

    NotFoundError for a missing file; SpecError with line and column for broken JSON, and for a repeated key.
    """
    return parse_document(read_text(Path(path)), str(path))


def parse_document(text: str, source: str) -> dict[str, object]:
    """The JSON object in `text`, read from `source`; SpecError as in `load_json`."""
    doc = parse_value(text, source)
    if not isinstance(doc, dict):
        raise SpecError(f"{source}: the file holds {shown(doc)}; a JSON object {{...}} is expected.")
    return doc


def parse_value(text: str, source: str) -> object:
    """The JSON value in `text`, read as strictly as a file; SpecError as in `load_json`."""
    if depth(text) > DEPTH_MAX:
        raise SpecError(f"{source}: the JSON nests deeper than {DEPTH_MAX} levels.")
    try:
        value: object = json.loads(
            text,
            object_pairs_hook=_unique_keys(text, source),
            parse_float=finite_float,
            parse_constant=_refuse_constant(source),
        )
    except json.JSONDecodeError as error:
        message = f"{source}: line {error.lineno}, column {error.colno}: this is not JSON: {error.msg}."
        raise SpecError(message) from error
    except ValueError as error:  # a whole number with more digits than Python accepts, or a too large one
        raise SpecError(f"{source}: this cannot be read: {error}.") from error
    return value


def apply_set(doc: dict[str, object], assignment: str, source: str) -> dict[str, object]:
    """A copy of `doc` with one `--set` applied. See `apply_sets`."""
    return apply_sets([(doc, source)], [assignment])[0][0]


def apply_sets(documents: list[Document], assignments: list[str]) -> list[Document]:
    """Copies of the documents (with their sources) after every `POINTER=VALUE`, in order.

    POINTER is a JSON pointer, or a bare key that occurs once in all the documents. A pointer is set in every document
    where it exists, else in the only document that has its parent. VALUE is JSON when it parses, else text.
    SpecError lists the candidates; UsageError without `=`.
    """
    changed = [(copy.deepcopy(doc), source) for doc, source in documents]
    for assignment in assignments:
        pointer, equals, text = assignment.partition("=")
        if not equals or not pointer:
            raise UsageError(f"--set {assignment!r}: write POINTER=VALUE, as in /segmentsConfig/replication=1.")
        path = pointer if pointer.startswith("/") else _only_place(changed, pointer)
        _set(changed, path, _value(text, pointer))
    return changed


def pointers(node: object, path: str = "") -> Iterator[str]:
    """The JSON pointer of every key and element below `node`."""
    items: list[tuple[str, object]] = []
    if isinstance(node, dict):
        items = [(str(key), item) for key, item in node.items()]
    elif isinstance(node, list):
        items = [(str(position), item) for position, item in enumerate(node)]
    for key, item in items:
        below = f"{path}/{_escape(key)}"
        yield below
        yield from pointers(item, below)


def read_text(path: Path) -> str:
    """The text of a user's file. NotFoundError when it does not exist, SpecError when it is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise NotFoundError(f"File '{path}' does not exist.") from error
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: byte {error.start} is not UTF-8.") from error
    except OSError as error:
        raise SpecError(f"{path}: the file cannot be read: {error.strerror}.") from error


def _unique_keys(text: str, source: str) -> Callable[[list[tuple[str, object]]], dict[str, object]]:
    def build(pairs: list[tuple[str, object]]) -> dict[str, object]:
        doc = dict(pairs)
        if len(doc) != len(pairs):
            keys = [key for key, _ in pairs]
            twice = Counter(keys).most_common(1)[0][0]
            lines = ", ".join(map(str, _lines_of(twice, text)))
            raise SpecError(
                f"{source}: key '{twice}' is given twice in one object (it is on lines {lines}). Remove one."
            )
        return doc

    return build


def _lines_of(key: str, text: str) -> list[int]:
    matches = re.finditer(re.escape(json.dumps(key, ensure_ascii=False)) + r"\s*:", text)
    return [text.count("\n", 0, match.start()) + 1 for match in matches]


def _refuse_constant(source: str) -> Callable[[str], NoReturn]:
    def refuse(name: str) -> NoReturn:
        raise SpecError(f'{source}: {name} is not JSON. Write a number, or the text "{name}".')

    return refuse


def _value(text: str, pointer: str) -> object:
    def number(digits: str) -> float:
        try:
            return finite_float(digits)
        except ValueError as error:
            raise SpecError(f"--set {pointer}: {error}.") from error

    try:
        value: object = json.loads(text, parse_float=number, parse_constant=_not_json)
    except (ValueError, RecursionError):
        return text
    return value


def _not_json(name: str) -> NoReturn:
    raise ValueError(name)


def _only_place(documents: list[Document], key: str) -> str:
    everywhere = [(path, source) for doc, source in documents for path in pointers(doc)]
    places = [(path, source) for path, source in everywhere if path.rpartition("/")[2] == _escape(key)]
    if len(places) == 1:
        return places[0][0]
    if places:
        raise SpecError(f"--set {key}: the key stands in {len(places)} places: {_listed(places)}. Give one of these.")
    keys = {path.rpartition("/")[2] for path, _ in everywhere}
    message = f"--set {key}: no such key.{suggestion(key, keys)}"
    raise SpecError(message, hint="Give a JSON pointer such as /segmentsConfig/replication=1 to add one.")


def _set(documents: list[Document], path: str, value: object) -> None:
    """Set a pointer in every document where it exists, or add its last key to the only document with its parent."""
    *parents, last = [_unescape(part) for part in path.split("/")[1:]]
    if parents == _FREE_KEYS and len(documents) == 1:
        _make_objects(documents[0][0], parents, path)
    nodes = [(_follow(doc, parents), source) for doc, source in documents]
    holders = [(node, source) for node, source in nodes if _holds(node, last)]
    if not holders:
        holders = [(node, source) for node, source in nodes if isinstance(node, dict)]
        if len(holders) > 1:
            sources = ", ".join(source for _, source in holders)
            raise SpecError(f"--set {path}: it is new, and could go into each of {sources}. Add the key to one file.")
    if not holders:
        near = [(pointer, source) for doc, source in documents for pointer in pointers(doc)]
        hint = suggestion(path, [pointer for pointer, _ in near]) or f" There are: {_listed(near)}."
        raise SpecError(f"--set {path}: nothing is there to set.{hint}")
    for node, _ in holders:
        _assign(node, last, value)


def _make_objects(doc: dict[str, object], keys: list[str], path: str) -> None:
    """Create nested objects that are missing or null. SpecError where a value is no object."""
    node = doc
    for key in keys:
        if node.get(key) is None:
            node[key] = {}
        below = node[key]
        if not isinstance(below, dict):
            raise SpecError(f"--set {path}: '{key}' is {shown(below)}, no object: nothing can be set in it.")
        node = below


def _follow(node: object, parts: list[str]) -> object:
    for part in parts:
        if isinstance(node, dict):
            node = node.get(part)
        elif isinstance(node, list):
            position = _position(node, part)
            node = None if position is None else node[position]
        else:
            return None
    return node


def _holds(node: object, key: str) -> bool:
    return key in node if isinstance(node, dict) else isinstance(node, list) and _position(node, key) is not None


def _assign(node: object, key: str, value: object) -> None:
    if isinstance(node, dict):
        node[key] = value
    elif isinstance(node, list):
        position = _position(node, key)
        assert position is not None
        node[position] = value


def _position(items: list[object], part: str) -> int | None:
    """The position of an element by index, or of the only element with that name or label."""
    if part.isascii() and part.isdigit():
        return int(part) if len(part) < 10 and int(part) < len(items) else None
    named = [position for position, item in enumerate(items) if isinstance(item, dict) and part in _names(item)]
    if len(named) > 1:
        raise SpecError(f"--set: {len(named)} elements are named '{part}'. Give the index of one.")
    return named[0] if named else None


def _names(item: dict[str, object]) -> list[object]:
    labels = item.get("labels")
    return [item.get("name"), item.get("label"), *(labels if isinstance(labels, list) else [])]


def _listed(found: list[tuple[str, str]]) -> str:
    several = len({source for _, source in found}) > 1
    texts = [f"{path} ({source})" if several else path for path, source in found[:_SHOWN_MAX]]
    return ", ".join(texts) + (", ..." if len(found) > _SHOWN_MAX else "")


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _unescape(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")
