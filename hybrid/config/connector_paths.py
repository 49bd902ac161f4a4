"""Local paths of connectors: made absolute where a document is read, so that they mean the same wherever they are used.

A table's connectors run in processes with other working directories than that of the command that creates the table.
"""

from __future__ import annotations

import copy
import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from hybrid.config.input_rules import KERNEL_FOLDERS
from hybrid.errors import SpecError
from hybrid.schema.document import configs_in, shown

if TYPE_CHECKING:
    from hybrid.config.overrides import Document

# The key of each transport's config that holds a path or an address.
_PATH_KEYS = {"file_input": "path", "delta_table_input": "uri"}
# The beginnings of addresses, by key: those that the reader of the key does not take for a path.
_DELTA_ADDRESS = re.compile(r"file:|[A-Za-z][A-Za-z0-9+.-]*://")
_ADDRESSES = {"path": re.compile(r".*?://", re.DOTALL), "uri": _DELTA_ADDRESS}


class _RelativePath(NamedTuple):
    """A relative path in a table config: the object that holds it, its key, and its place for messages."""

    holder: dict[str, Any]
    key: str
    text: str
    place: str


def absolute_uri(uri: str) -> str:
    """The address of a Delta table; a relative path of an older definition starts at the working directory."""
    return uri if _DELTA_ADDRESS.match(uri) else os.path.join(os.getcwd(), uri)


def folder_of(file: Path) -> Path | None:
    """The folder where relative paths in `file` start, without links; None for standard input and other pipes."""
    folder = file.absolute().parent.resolve()
    is_of_kernel = any(folder.is_relative_to(place) for place in KERNEL_FOLDERS)
    return folder if file.is_file() and not is_of_kernel else None


def configs_of_file(document: dict[str, object], file: Path) -> list[Document]:
    """The table configs in a JSON document that was read from `file`, with absolute paths."""
    folder = folder_of(file)
    return [(with_absolute_paths(config, folder), str(file)) for config in configs_in(document)]


def with_absolute_paths(config: Mapping[str, object], folder: Path | None) -> dict[str, object]:
    """A copy of a table config whose connectors' relative paths start at `folder`.

    Addresses (`s3://`, `file:///`) and absolute paths stay as they are; without a folder, all do.
    """
    absolute = copy.deepcopy(dict(config))
    if folder is not None:
        for path in _relative_paths(absolute):
            path.holder[path.key] = _joined(folder, path)
    return absolute


def refuse_relative_paths(configs: Iterable[Document], stored: Mapping[str, object] | None) -> None:
    """SpecError for a relative path of a connector, unless the `stored` REALTIME config of the table has it, too."""
    known = {(path.key, path.text) for path in _relative_paths(stored or {})}
    documents = [(config, source) for document, source in configs for config in configs_in(document)]
    for source, path in [(source, path) for config, source in documents for path in _relative_paths(config)]:
        if (path.key, path.text) not in known:
            message = f"{shown(path.text)} is relative, and only paths in a file are: to the file's folder."
            raise SpecError.at(source, path.place, f"{message} Write an absolute path.")


def _relative_paths(config: Mapping[str, object]) -> Iterator[_RelativePath]:
    """The relative paths of every connector. What is not of the right form is left to `parse_connectors`."""
    connectors = config.get("connectors")
    for position, connector in enumerate(connectors if isinstance(connectors, list) else ()):
        transport = _object(connector, "transport")
        name, holder = transport.get("name"), _object(transport, "config")
        key = _PATH_KEYS.get(name.strip()) if isinstance(name, str) else None
        value = holder.get(key) if key is not None else None
        text = value.strip() if isinstance(value, str) else ""
        if key is not None and text and not _ADDRESSES[key].match(text) and not os.path.isabs(text):
            yield _RelativePath(holder, key, text, f"connectors[{position}].transport.config.{key}")


def _object(holder: object, key: str) -> dict[str, Any]:
    value = holder.get(key) if isinstance(holder, dict) else None
    return value if isinstance(value, dict) else {}


def _joined(folder: Path, path: _RelativePath) -> str:
    """The path below `folder`. The wildcards of a pattern keep their meaning, and those of the folder have none."""
    expanded = os.path.expanduser(path.text)
    parts = PurePath(expanded).parts
    while parts[:1] == ("..",):
        folder, parts = folder.parent, parts[1:]
    is_pattern = path.key == _PATH_KEYS["file_input"] and glob.has_magic(expanded)
    return os.path.join(glob.escape(str(folder)) if is_pattern else str(folder), *parts)
