"""The documents that describe a table, as users give them: files, DDL, or JSON of a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from hybrid.config.overrides import Document

_ANY_BROKERS = "127.0.0.1:9092"


@dataclass(frozen=True)
class TableDocuments:
    """The schema and configs of a table, each with its source, and changes to them.

    `kafka` replaces the brokers of the configs. `overrides` are `POINTER=VALUE` texts, as `--set` takes them.
    `default_kafka` is for a new table only. Of what is read from a file, relative paths of connectors start at its
    folder: they are absolute here.
    """

    schema: Document
    configs: Sequence[Document] = field(repr=False)
    kafka: str | None = None
    overrides: Sequence[str] = field(default=(), repr=False)
    default_kafka: str | None = None

    @classmethod
    def read(
        cls,
        schema: Path,
        configs: Sequence[Path],
        kafka: str | None = None,
        overrides: Sequence[str] = (),
        default_kafka: str | None = None,
    ) -> TableDocuments:
        """The documents in a user's files."""
        from hybrid.config.connector_paths import configs_of_file
        from hybrid.config.overrides import load_json

        documents = [config for path in configs for config in configs_of_file(load_json(path), path)]
        return cls((load_json(schema), str(schema)), documents, kafka, overrides, default_kafka)

    @classmethod
    def from_export(
        cls, path: Path, kafka: str | None = None, overrides: Sequence[str] = (), default_kafka: str | None = None
    ) -> TableDocuments:
        """The documents in one file, as `hybrid table export` and `GET /tableConfigs/{table}` give them."""
        from hybrid.config.connector_paths import configs_of_file
        from hybrid.config.overrides import load_json
        from hybrid.errors import SpecError

        export = load_json(path)
        schema, configs = export.get("schema"), configs_of_file(export, path)
        if not isinstance(schema, dict):
            raise SpecError.at(str(path), "schema", "is missing.", hint="hybrid table export TABLE writes such a file.")
        return cls((schema, f"{path}: schema"), configs, kafka, overrides, default_kafka)

    @classmethod
    def from_ddl(
        cls, path: Path, kafka: str | None = None, overrides: Sequence[str] = (), default_kafka: str | None = None
    ) -> list[DdlDocuments]:
        """The documents of every table in a file of CREATE TABLE statements, changed by `overrides`, with warnings."""
        from hybrid.config.connector_paths import folder_of
        from hybrid.config.overrides import read_text

        return cls.from_statements(read_text(path), str(path), kafka, overrides, default_kafka, folder_of(path))

    @classmethod
    def from_statements(
        cls,
        text: str,
        source: str,
        kafka: str | None = None,
        overrides: Sequence[str] = (),
        default_kafka: str | None = None,
        folder: Path | None = None,
    ) -> list[DdlDocuments]:
        """The documents of every table in CREATE TABLE statements that were read from `source`, a file in `folder`."""
        from hybrid.config.connector_paths import with_absolute_paths
        from hybrid.config.ddl import parse_ddl
        from hybrid.config.overrides import apply_sets

        # A table that exists has brokers already, so that missing brokers are no error yet.
        tables = parse_ddl(text, source, kafka or default_kafka or _ANY_BROKERS)
        documents = [
            (with_absolute_paths(config, folder), f"{source}: {table.name}")
            for table in tables
            for config in table.configs
        ]
        changed = iter(apply_sets(documents, list(overrides)))
        return [
            DdlDocuments(
                cls(
                    (table.schema_doc, f"{source}: {table.name}"),
                    [next(changed) for _ in table.configs],
                    kafka,
                    default_kafka=default_kafka,
                ),
                table.warnings,
            )
            for table in tables
        ]

    @classmethod
    def from_json(cls, doc: Mapping[str, Any]) -> TableDocuments:
        """The inverse of `to_json`."""
        schema, configs = doc["schema"], [(config, source) for config, source in doc["configs"]]
        kafka, default = doc.get("kafka"), doc.get("default_kafka")
        return cls((schema[0], schema[1]), configs, kafka, doc.get("overrides", ()), default)

    def to_json(self) -> dict[str, Any]:
        """The JSON form in requests to a server."""
        return {
            "schema": list(self.schema),
            "configs": [list(config) for config in self.configs],
            "kafka": self.kafka,
            "overrides": list(self.overrides),
            "default_kafka": self.default_kafka,
        }


class DdlDocuments(NamedTuple):
    """A table of a DDL file, with the warnings about parts of the file that have no effect."""

    documents: TableDocuments
    warnings: Sequence[str]
