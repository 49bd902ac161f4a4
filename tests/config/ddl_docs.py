"""CREATE TABLE statements, and what they become."""

import json
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.ddl import DdlTable, parse_ddl
from hybrid.errors import SpecError

FILES = sorted((Path(__file__).resolve().parents[2] / "data" / "lineitem").glob("*.sql"))


def one(text: str) -> DdlTable:
    [table] = parse_ddl(text, "t.sql")
    return table


def table(columns: str, **options: str) -> DdlTable:
    return one(statement(columns, **options))


def statement(columns: str, **options: str) -> str:
    """`hybrid_x` is 'hybrid.x'."""
    pairs = [f"'{key.replace('hybrid_', 'hybrid.')}' = '{value}'" for key, value in options.items()]
    return f"CREATE TABLE t ({columns})" + (f" WITH ({', '.join(pairs)})" if pairs else "")


def fails(text: str) -> str:
    with pytest.raises(SpecError) as caught:
        parse_ddl(text, "t.sql")
    return str(caught.value).removeprefix("t.sql: ")


def fails_table(columns: str, **options: str) -> str:
    return fails(statement(columns, **options))


def fields(made: DdlTable) -> dict[str, dict[str, Any]]:
    doc: dict[str, Any] = made.schema_doc
    found = [*doc["dimensionFieldSpecs"], *doc.get("dateTimeFieldSpecs", [])]
    return {field["name"]: field for field in found}


def configs(made: DdlTable) -> tuple[dict[str, Any], dict[str, Any]]:
    realtime, offline = made.configs
    return realtime, offline


def move(made: DdlTable) -> dict[str, Any]:
    task: dict[str, Any] = configs(made)[0]["task"]["taskTypeConfigsMap"]["RealtimeToOfflineSegmentsTask"]
    return task


def connectors(*docs: dict[str, Any]) -> str:
    return json.dumps(docs)


KAFKA = {"transport": {"name": "kafka_input", "config": {"topic": "t", "bootstrap.servers": "k"}}}
RAW = {**KAFKA, "format": {"name": "json", "config": {"update_format": "raw"}}}
CHANGES = {**KAFKA, "format": {"name": "json"}}
