"""`InferredTable`: the documents that fit a sample, and what was seen in it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hybrid.config.table_documents import TableDocuments
from hybrid.operations.tables.export import export_files, write_new_files
from hybrid.runtime.sentence_repr import shown_as_sentence


@dataclass(frozen=True)
class InferredColumn:
    """A column. `field` is the field of the records that fills it; `type` as `STRING[]`, or empty: no column holds it.

    `nulls` counts the records without a value, `distinct` the different values, `samples` shows the first of them.
    `time_format` is set where the column holds times.
    """

    name: str
    field: str
    type: str
    nulls: int
    distinct: int
    samples: Sequence[str]
    time_format: str | None = None


@shown_as_sentence
@dataclass(frozen=True)
class InferredTable:
    """A table as inferred from `source`. `documents` takes it to `Hybrid.create_table`, `write` to files.

    `ddl` is the statement, where it was asked for, `job` the job spec (YAML) that loads the file. `records` were read,
    `malformed` messages held none. `rejected` of the records would not become rows. `notes` are sentences about what a
    person should check.
    """

    table: str
    source: str
    schema: Mapping[str, Any]
    realtime: Mapping[str, Any] | None
    offline: Mapping[str, Any] | None
    columns: Sequence[InferredColumn]
    time_column: str | None
    key: Sequence[str]
    records: int
    malformed: int
    rejected: int
    notes: Sequence[str]
    job: str | None = None
    ddl: str | None = field(default=None, repr=False)

    def documents(self) -> TableDocuments:
        """The schema and configs as `Hybrid.create_table` takes them."""
        named = (("REALTIME", self.realtime), ("OFFLINE", self.offline))
        configs = [(dict(doc), f"{self.table} {half}") for half, doc in named if doc is not None]
        return TableDocuments((dict(self.schema), f"the schema of {self.table}"), configs)

    def export(self) -> dict[str, Any]:
        """One document: the form of `hybrid table export`, which `hybrid table create -f` takes."""
        configs = {"offline": self.offline, "realtime": self.realtime}
        present = {name: dict(doc) for name, doc in configs.items() if doc is not None}
        return {"tableName": self.table, "schema": dict(self.schema), **present}

    def write(self, folder: str | Path) -> list[Path]:
        """Writes the documents, or the statement, and the job spec. ConflictError, before writing, when one exists."""
        return write_inferred(self.to_json(), Path(folder))

    def to_json(self) -> dict[str, Any]:
        """The JSON form."""
        fields = {name: value for name, value in vars(self).items() if name not in _DOCUMENTS}
        return {
            **fields,
            "key": list(self.key),
            "notes": list(self.notes),
            "columns": [{**asdict(column), "samples": list(column.samples)} for column in self.columns],
            "documents": self.export(),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> InferredTable:
        """The inverse of `to_json`."""
        export = document["documents"]
        fields = {name: value for name, value in document.items() if name != "documents"}
        columns = [InferredColumn(**column) for column in document["columns"]]
        halves = {name: export.get(name) for name in ("realtime", "offline")}
        return cls(**{**fields, "columns": columns}, schema=export["schema"], **halves)

    def __str__(self) -> str:
        return "\n".join((self.sentence, *self.notes))

    @property
    def sentence(self) -> str:
        """What the sample was, in one sentence."""
        return sentence_of(self.to_json())


_DOCUMENTS = frozenset({"schema", "realtime", "offline"})


def sentence_of(document: Mapping[str, Any]) -> str:
    """One sentence about an inference in its JSON form."""
    count, columns = document["records"], len(document["documents"]["schema"].get("dimensionFieldSpecs", ()))
    columns += len(document["documents"]["schema"].get("dateTimeFieldSpecs", ()))
    malformed = f", {document['malformed']:,} malformed" if document["malformed"] else ""
    records = f"{count:,} record{'' if count == 1 else 's'}{malformed}"
    counted = f"{columns} column{'' if columns == 1 else 's'}"
    return f"Table '{document['table']}': {counted}, inferred from {records} of {document['source']}."


def write_inferred(document: Mapping[str, Any], folder: Path) -> list[Path]:
    """Writes the files of an inference in its JSON form: see `InferredTable.write`."""
    files = export_files(document["documents"], folder)
    if document["ddl"] is not None:
        texts = {folder / f"{document['documents']['tableName']}.sql": document["ddl"]}
    else:
        texts = {path: json.dumps(part, indent=2, ensure_ascii=False) + "\n" for path, part in files.items()}
        if document["job"] is not None:
            texts[folder / f"{document['documents']['tableName']}_job.yml"] = document["job"]
    return write_new_files(texts, folder)
