"""Compiles JSON paths: `$`, `.name`, `['name']`, `[0]`, `[-1]`, `[*]`, `.*`. Refuses filters, slices and `..`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hybrid.expression.constants import constant_text

_STEP = re.compile(
    r"\.(?P<name>[^.\[\]()*'\"\s]+)|\[\s*(?P<quoted>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")\s*\]"
    r"|\[\s*(?P<index>-?[0-9]{1,9})\s*\]|(?P<all>\.\*|\[\s*\*\s*\])"
)
_ALL = None


@dataclass(frozen=True)
class JsonPath:
    """A compiled path: names, positions, and None for a wildcard."""

    steps: tuple[str | int | None, ...]

    def find(self, value: object) -> object:
        """The value at the path, None when there is none; with a wildcard the list of all values."""
        if _ALL in self.steps:
            return list(_every(value, self.steps))
        for step in self.steps:
            value = _one(value, step)
            if value is None:
                return None
        return value


def json_path(value: object) -> JsonPath:
    """The path in a constant. ValueError for a path that is invalid or not supported."""
    text = constant_text(value).strip()
    position, steps = 1, []
    while text.startswith("$") and position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            break
        steps.append(_step(match))
        position = match.end()
    if not text.startswith("$") or position < len(text):
        raise ValueError(f"'{text}' is not a JSON path that is read here. Write it like '$.a.b[0]' or '$.items[*].id'")
    return JsonPath(tuple(steps))


def _step(match: re.Match[str]) -> str | int | None:
    if match["name"] is not None:
        return match["name"]
    if match["quoted"] is not None:
        return re.sub(r"\\(.)", r"\1", match["quoted"][1:-1])
    return int(match["index"]) if match["index"] is not None else _ALL


def _one(value: object, step: str | int | None) -> object:
    if isinstance(step, str):
        return value.get(step) if isinstance(value, dict) else None
    assert step is not None
    return value[step] if isinstance(value, (list, tuple)) and -len(value) <= step < len(value) else None


def _every(value: object, steps: tuple[str | int | None, ...]) -> Iterator[object]:
    if not steps:
        yield value
        return
    first, rest = steps[0], steps[1:]
    if first is not _ALL:
        children = [_one(value, first)]
    else:
        children = list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, list) else []
    for child in children:
        if child is not None:
            yield from _every(child, rest)
