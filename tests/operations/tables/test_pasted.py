"""Pasted documents of a table: all errors at once, each with its line; one document or several."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from hybrid.api.hybrid import Hybrid
from hybrid.config.settings import load_settings
from hybrid.errors import SpecError, UsageError
from hybrid.home.home import Home
from hybrid.operations.tables.pasted import PastedTexts, read_pasted
from hybrid.progress import Silent
from tests.serve.app import OFFLINE, REALTIME, SCHEMA

SCHEMA_TEXT, OFFLINE_TEXT = json.dumps(SCHEMA, indent=2), json.dumps(OFFLINE, indent=2)
DDL = "CREATE TABLE payments (\n    id BIGINT NOT NULL PRIMARY KEY,\n    ts TIMESTAMP NOT NULL\n);"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    made = Hybrid(load_settings(home=tmp_path_factory.mktemp("pasted")), Silent())
    yield made.context
    made.close()


def errors(home: Home, **texts: str) -> list[str]:
    with pytest.raises(SpecError) as raised:
        read_pasted(home, PastedTexts(**texts))
    return [str(error) for error in raised.value.all()]


def lines(found: list[str]) -> list[str]:
    return [error.rpartition(" (line ")[2].rstrip(")") for error in found]


def line_of(text: str, part: str) -> str:
    return str(text[: text.index(part)].count("\n") + 1)


def test_files_and_one_document_are_the_same_table(home: Home) -> None:
    parts = read_pasted(home, PastedTexts(schema=SCHEMA_TEXT, offline=OFFLINE_TEXT, realtime=json.dumps(REALTIME)))
    whole = json.dumps({"tableName": "orders", "schema": SCHEMA, "offline": OFFLINE, "realtime": REALTIME})
    export = read_pasted(home, PastedTexts(whole=whole))
    assert parts.name == export.name == "orders"
    assert dict(parts.documents.schema[0]) == dict(export.documents.schema[0])
    assert sorted(config["tableType"] for config, _ in export.documents.configs) == ["OFFLINE", "REALTIME"]


def test_a_statement_is_one_table(home: Home) -> None:
    found = read_pasted(home, PastedTexts(whole=DDL))
    assert found.name == "payments" and len(found.documents.configs) == 2
    with pytest.raises(UsageError, match="declare 2 tables"):
        read_pasted(home, PastedTexts(whole=DDL + DDL.replace("payments", "refunds")))
    (error,) = errors(home, whole=DDL.replace("TIMESTAMP", "TIMESTAMPS"))
    assert "line 3" in error, error


def test_all_errors_come_with_their_lines(home: Home) -> None:
    """Also where the documents are parts of one: a line is that of the text that was pasted."""
    schema = SCHEMA_TEXT.replace('"INT"', '"INTEGERS"').replace('"FLOAT"', '"REALS"')
    offline = OFFLINE_TEXT.replace('"orders"', '"or ders"', 1)
    found = errors(home, schema=schema, offline=offline)
    assert [error.partition(":")[0] for error in found] == ["Schema", "Schema", "OFFLINE config"]
    assert lines(found) == [line_of(schema, "INTEGERS"), line_of(schema, "REALS"), line_of(offline, "tableName")]

    whole = json.dumps({"schema": json.loads(schema), "offline": json.loads(offline)}, indent=2)
    found = errors(home, whole=whole)
    assert [error.partition(":")[0] for error in found] == ["Document, schema", "Document, schema", "Document, offline"]
    assert lines(found) == [line_of(whole, "INTEGERS"), line_of(whole, "REALS"), line_of(whole, "tableName")]


def test_texts_that_are_no_json(home: Home) -> None:
    found = errors(home, schema="{\n x", offline='{"a": 1,\n\n "a": 2}', realtime="[]")
    assert [error.partition(":")[0] for error in found] == ["Schema", "REALTIME config", "OFFLINE config"]
    assert "line 2" in found[0] and "lines 1, 3" in found[2]
    for whole, part in (("{", "line 1"), ("{}", "schema: is missing"), ('{"schema": {}}', "no table config")):
        assert part in errors(home, whole=whole)[0], whole
    assert "is not an object" in errors(home, whole='{"schema": {}, "offline": 3}')[0]
    assert "nests deeper" in errors(home, schema="[" * 5000, offline="{}")[0]
    assert "CREATE TABLE" in errors(home, whole="DROP TABLE orders;")[0]


def test_missing_and_doubled_texts(home: Home) -> None:
    for texts in ({}, {"schema": SCHEMA_TEXT}, {"offline": OFFLINE_TEXT, "realtime": OFFLINE_TEXT}, {"schema": " \n"}):
        with pytest.raises(UsageError, match="A table needs"):
            read_pasted(home, PastedTexts(**texts))
    with pytest.raises(UsageError, match="leave Schema empty"):
        read_pasted(home, PastedTexts(whole=DDL, schema=SCHEMA_TEXT))
    with pytest.raises(UsageError, match="longer than"):
        read_pasted(home, PastedTexts(whole="-" * 1_000_001))
