"""Exports a table's current documents in the form that `hybrid table apply` takes.

References to secrets stay references. A secret in plain text is hidden, as in every other answer, and its place named.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid.catalog.definitions import is_table_name
from hybrid.config.table_documents import TableDocuments
from hybrid.errors import ConflictError, DataError, NotFoundError
from hybrid.runtime import durable
from hybrid.runtime.sentence_repr import shown_as
from hybrid.schema.references import without_plain_secrets

if TYPE_CHECKING:
    from hybrid.catalog.definitions import Definition
    from hybrid.home.home import Home

_OTHER_FOLDER = "Name another folder with -o."


@shown_as("{0.table}")
@dataclass(frozen=True)
class TableExport:
    """The schema and configs of a table. `hidden` are the places of secrets that are not in the documents.

    `brokers` are those that the table reads from, which `--kafka` may have named instead of its config.
    """

    table: str
    schema: Mapping[str, Any]
    realtime: Mapping[str, Any] | None
    offline: Mapping[str, Any] | None
    brokers: str | None
    hidden: Sequence[str]

    def documents(self) -> TableDocuments:
        """The documents as `hy.apply_table` takes them."""
        configs = [(dict(doc), name) for name, doc in self._configs().items()]
        return TableDocuments((dict(self.schema), "schema"), configs)

    def to_json(self) -> dict[str, Any]:
        """One document: the form of `GET /tableConfigs/{table}`."""
        return {"tableName": self.table, "schema": dict(self.schema), **self._configs()}

    def write(self, folder: Path) -> list[Path]:
        """Writes a file for the schema and for each config. ConflictError, before writing, when one exists."""
        return write_export(self.to_json(), folder)

    def _configs(self) -> dict[str, dict[str, Any]]:
        by_name = {"offline": self.offline, "realtime": self.realtime}
        return {name: dict(doc) for name, doc in by_name.items() if doc is not None}


def write_export(document: Mapping[str, Any], folder: Path) -> list[Path]:
    """Writes the parts of an export (`TableExport.to_json`) to files of their own, as `TableExport.write` does."""
    files = export_files(document, folder)
    texts = {path: json.dumps(part, indent=2, ensure_ascii=False) + "\n" for path, part in files.items()}
    return write_new_files(texts, folder)


def export_files(document: Mapping[str, Any], folder: Path) -> dict[Path, Any]:
    """The files of an export in a folder, and the document of each. DataError for a bad name of a table."""
    names = {"schema": "schema", "offline": "offline_table", "realtime": "realtime_table"}
    table, parts = document["tableName"], {name: document[key] for key, name in names.items() if key in document}
    if not is_table_name(table):  # it comes from a server, and becomes the name of files
        raise DataError(f"{table!r} is no name of a table. Nothing was written.")
    return {folder / f"{table}_{name}.json": part for name, part in parts.items()}


def write_new_files(texts: Mapping[Path, str], folder: Path) -> list[Path]:
    """Writes files into a folder, which is made. ConflictError, before writing, when one exists."""
    existing = next((path for path in texts if path.exists() or path.is_symlink()), None)
    if existing is not None:
        raise ConflictError(f"{existing} exists already. Nothing was written.", hint=_OTHER_FOLDER)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise ConflictError(f"{folder} is not a folder. Nothing was written.", hint=_OTHER_FOLDER) from error
    for path, text in texts.items():
        durable.write_text(path, text)
    return list(texts)


def export_table(home: Home, name: str) -> TableExport:
    """The current documents of a table; NotFoundError, with a suggestion, for an unknown name."""
    spec = home.spec(name)
    definition = home.definitions.find(spec.name)
    if definition is None:  # dropped since
        raise NotFoundError.named("Table", name, home.table_names())
    return _exported(definition)


def _exported(definition: Definition) -> TableExport:
    hidden: list[str] = []
    shown: list[dict[str, Any] | None] = []
    for half, document in (("realtime", definition.realtime_doc), ("offline", definition.offline_doc)):
        if document is None:
            shown.append(None)
            continue
        public, places = without_plain_secrets(dict(document))
        shown.append(public)
        hidden.extend(f"{half}.{place}" for place in places)
    realtime, offline = shown
    return TableExport(definition.name, dict(definition.schema_doc), realtime, offline, definition.brokers, hidden)
