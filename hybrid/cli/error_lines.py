"""Adds the line to an error that names a file and a place in its JSON or YAML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hybrid.schema.jsonplaces import lines_of, nearest_line

# `orders_schema.json: dimensionFieldSpecs[1].dataType: ...`; paths have no spaces.
_PLACED = re.compile(r"(?P<file>[^\n]{1,500}?\.(?:json|ya?ml)): (?P<path>[\w.\[\]-]{1,300}): ")
_BYTES_MAX = 1_000_000


def with_line(message: str) -> str:
    """The message, with the line of its place where the file is on this machine."""
    match = _PLACED.match(message)
    line = _line_of(Path(match["file"]), match["path"]) if match is not None else None
    return message if line is None else f"{message} (line {line})"


def _line_of(file: Path, path: str) -> int | None:
    """The line of a path, or of the nearest parent that the file has; None where the file cannot be read."""
    try:
        if not file.is_file() or file.stat().st_size > _BYTES_MAX:
            return None
        text = file.read_text(encoding="utf-8-sig")
        lines = dict(_yaml_lines(text)) if file.suffix != ".json" else lines_of(text)
    except (OSError, ValueError, RecursionError):
        return None
    return nearest_line(lines, path)


def _yaml_lines(text: str) -> Iterator[tuple[str, int]]:
    import yaml

    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    yield from _below(node, "")


def _below(node: Any, path: str) -> Iterator[tuple[str, int]]:
    kind = getattr(node, "id", "")
    if kind == "mapping":
        for key, value in node.value:
            name = f"{path}.{key.value}" if path else str(key.value)
            yield name, key.start_mark.line + 1
            yield from _below(value, name)
    elif kind == "sequence":
        for position, item in enumerate(node.value):
            yield f"{path}[{position}]", item.start_mark.line + 1
            yield from _below(item, f"{path}[{position}]")
