"""Reads the YAML of a job spec as a document: within bounds of its size, and without keys that are given twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from hybrid.errors import NotFoundError, SpecError
from hybrid.schema.document import shown
from hybrid.schema.secrets import without_secrets

_NODES_MAX = 100_000
_EVENTS_MAX = 2 * _NODES_MAX  # a mapping or list begins and ends
_SPEC_MAX = 1024 * 1024


def job_document(text: str, source: str) -> dict[str, object]:
    """The YAML mapping in `text`, read from `source`. SpecError names the line of the mistake."""
    import yaml

    if len(text) > _SPEC_MAX:
        raise SpecError(f"{source}: a job spec is at most {_SPEC_MAX} characters, and this one has {len(text)}.")
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _refuse_many(yaml.parse(text, Loader=loader), source)
        node = yaml.compose(text, Loader=loader)
        _refuse_twins(node, source, count())
        doc = _constructed(loader, node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f" line {mark.line + 1}, column {mark.column + 1}:" if mark else ""
        raise SpecError(f"{source}:{place} this is not YAML: {error.problem or error.context}.") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SpecError(f"{source}: this is not YAML: {' '.join(str(error).split())}.") from error
    if not isinstance(doc, dict):
        raise SpecError(f"{source}: the file holds {shown(without_secrets(doc))}; a job spec is expected.")
    return doc


def _refuse_many(events: Iterable[object], source: str) -> None:
    """SpecError for too many values. They are counted while they are parsed, before any is built."""
    for number, _ in enumerate(events):
        if number > _EVENTS_MAX:
            raise SpecError(f"{source}: the document holds more than {_NODES_MAX} values.")


def _constructed(loader: Any, node: Any) -> object:
    """The Python value of a parsed document."""
    return None if node is None else loader("").construct_document(node)


def read_job_file(path: Path) -> str:
    """The text of a job spec file. NotFoundError, or SpecError when it cannot be read as text."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise NotFoundError(f"File '{path}' does not exist.") from error
    except OSError as error:
        raise SpecError(f"{path}: the file cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: byte {error.start} is not UTF-8.") from error


def _refuse_twins(node: Any, source: str, nodes: Iterator[int]) -> None:
    """SpecError for repeated keys: in YAML the last one wins, and the value of the first is lost silently.

    SpecError also for too many values by nested aliases, which a few lines can expand beyond memory. `nodes` counts
    the expanded values.
    """
    if next(nodes) > _NODES_MAX:
        raise SpecError(f"{source}: its aliases stand for more than {_NODES_MAX} values.")
    seen: set[str] = set()
    for item in getattr(node, "value", ()) if getattr(node, "id", "") in {"mapping", "sequence"} else ():
        key, value = item if isinstance(item, tuple) else (None, item)
        name = str(key.value) if key is not None else None
        if name is not None and name in seen:
            raise SpecError.at(source, name, f"is given twice, again on line {key.start_mark.line + 1}.")
        seen.update([name] if name is not None else [])
        _refuse_twins(value, source, nodes)
