"""Relative paths of connectors start at the folder of the file that holds them; without a file they are refused."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.connector_paths import folder_of, refuse_relative_paths, with_absolute_paths
from hybrid.config.table_documents import TableDocuments
from hybrid.errors import SpecError
from hybrid.operations.tables.given_documents import given_documents

FOLDER = Path("/ddl/sub")
DDL = """CREATE TABLE visits (id BIGINT NOT NULL, ts TIMESTAMP NOT NULL) WITH ('connectors' = '[
  {"labels": ["files"], "transport": {"name": "file_input", "config": {"path": "in/a.csv"}},
   "format": {"name": "csv"}}]');"""


def config(**paths: object) -> dict[str, Any]:
    """A REALTIME config with a connector for each transport."""
    transports = [{"name": name, "config": {key: value}} for name, value in paths.items() for key in [KEYS[name]]]
    return {"tableName": "t", "tableType": "REALTIME", "connectors": [{"transport": one} for one in transports]}


KEYS = {"file_input": "path", "delta_table_input": "uri", "kafka_input": "topic"}


def path_of(document: dict[str, object], position: int = 0) -> str:
    connectors: Any = document["connectors"]
    (value,) = connectors[position]["transport"]["config"].values()
    return str(value)


def absolute(name: str, text: str, folder: Path = FOLDER) -> str:
    return path_of(with_absolute_paths(config(**{name: text}), folder))


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a.csv", "/ddl/sub/a.csv"),
        (" ./in/a.csv ", "/ddl/sub/in/a.csv"),
        ("../../data/./a.csv", "/data/a.csv"),
        ("in/../a.csv", "/ddl/sub/in/../a.csv"),  # `in` may be a link
        ("../../../../a.csv", "/a.csv"),
        (".", "/ddl/sub"),
        ("in/", "/ddl/sub/in"),
    ],
)
def test_a_relative_path_starts_at_the_folder(text: str, path: str) -> None:
    assert absolute("file_input", text) == absolute("delta_table_input", text) == path


@pytest.mark.parametrize("text", ["/a/../b.csv", "/in/*.csv", "/in/[ab].csv", "file:///a/b", "s3://b/x", "", " "])
def test_absolute_paths_and_addresses_stay(text: str) -> None:
    assert absolute("file_input", text) == text


@pytest.mark.parametrize("uri", ["s3://b/t", "gs://b/t", "abfss://c@a.dfs.core.windows.net/t", "file:///t", "file:/t"])
def test_addresses_of_delta_tables_stay(uri: str) -> None:
    assert absolute("delta_table_input", uri) == uri
    assert absolute("file_input", "file:a") == "/ddl/sub/file:a"


def test_a_pattern_stays_a_pattern_and_its_folder_is_none() -> None:
    assert absolute("file_input", "in/**/*.c?v") == "/ddl/sub/in/**/*.c?v"
    assert absolute("file_input", "*.csv", Path("/ddl/[old]")) == "/ddl/[[]old]/*.csv"
    assert absolute("file_input", "a.csv", Path("/ddl/[old]")) == "/ddl/[old]/a.csv"
    assert absolute("delta_table_input", "a*", Path("/ddl/[old]")) == "/ddl/[old]/a*"


def test_the_home_folder_is_that_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert absolute("file_input", "~/a.csv") == absolute("delta_table_input", "~/a.csv") == "/home/ada/a.csv"


def test_only_paths_of_these_transports_are_changed_and_the_given_document_stays() -> None:
    given = config(kafka_input="orders", file_input="a.csv", delta_table_input="lake")
    before = copy.deepcopy(given)
    document = with_absolute_paths(given, FOLDER)
    assert [path_of(document, position) for position in range(3)] == ["orders", "/ddl/sub/a.csv", "/ddl/sub/lake"]
    assert given == before and with_absolute_paths(given, None) == before


@pytest.mark.parametrize(
    "connectors",
    [None, 5, {}, [5], [{}], [{"transport": 5}], [{"transport": {"name": ["x"], "config": {"path": "a"}}}],
     [{"transport": {"name": "file_input", "config": 5}}],
     [{"transport": {"name": "file_input", "config": {"path": 5}}}]],
)  # fmt: skip
def test_wrong_documents_are_left_to_their_reader(connectors: object) -> None:
    document = {"tableName": "t", "connectors": connectors}
    assert with_absolute_paths(document, FOLDER) == document
    refuse_relative_paths([(document, "f.json")], None)


def test_a_relative_path_without_a_file_is_refused_unless_the_table_has_it() -> None:
    given = config(kafka_input="orders", delta_table_input="lake")
    with pytest.raises(SpecError) as raised:
        refuse_relative_paths([(given, "body")], config(file_input="lake"))
    assert str(raised.value) == (
        "body: connectors[1].transport.config.uri: 'lake' is relative, and only paths in a file are: to the file's "
        "folder. Write an absolute path."
    )
    refuse_relative_paths([(given, "body")], config(delta_table_input="lake"))
    with pytest.raises(SpecError, match="'~/lake' is relative"):
        refuse_relative_paths([({"REALTIME": config(delta_table_input="~/lake")}, "body")], None)


def test_every_way_to_name_a_file_gives_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sub = tmp_path / "sub"
    sub.mkdir()
    (tmp_path / "link").symlink_to(sub)
    (sub / "r.sql").touch()
    monkeypatch.chdir(sub)
    names = ("r.sql", "./r.sql", "../sub/r.sql", "../link/r.sql", str(tmp_path / "link" / "r.sql"))
    assert {folder_of(Path(name)) for name in names} == {sub.resolve()}


def test_a_pipe_is_in_no_folder(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert folder_of(tmp_path / "pipe") is None and folder_of(Path("/dev/stdin")) is None


def test_files_of_every_kind_are_read_with_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also JSON configs, an export, and files that Python names."""
    folder = tmp_path.resolve()
    relative, schema = config(file_input="in/a.csv"), {"schemaName": "t"}
    texts = {"c.json": relative, "s.json": schema, "e.json": {"schema": schema, "realtime": relative}}
    for name, document in texts.items():
        (tmp_path / name).write_text(json.dumps(document))
    (tmp_path / "t.sql").write_text(DDL)
    monkeypatch.chdir("/")
    (declared,) = TableDocuments.from_ddl(tmp_path / "t.sql")
    found = [
        TableDocuments.read(tmp_path / "s.json", [tmp_path / "c.json"]),
        TableDocuments.from_export(tmp_path / "e.json"),
        given_documents(schema, [str(tmp_path / "c.json")]),
        declared.documents,
    ]
    assert {path_of(documents.configs[0][0]) for documents in found} == {f"{folder}/in/a.csv"}
    (pasted,) = TableDocuments.from_statements(DDL, "Document")
    loose = [given_documents(schema, [relative]), pasted.documents]
    assert {path_of(documents.configs[0][0]) for documents in loose} == {"in/a.csv"}
