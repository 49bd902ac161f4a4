"""A table from a file with relative paths: it holds absolute ones, wherever its commands run. No JVM."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.api.hybrid import Hybrid
from hybrid.cli.main import run
from hybrid.config.table_documents import TableDocuments
from hybrid.errors import SpecError
from hybrid.operations.tables.schemas import put_schema
from tests.config.test_connector_paths import DDL

RELATIVE = '"path": "in/a.csv"'
UNCHANGED = "Nothing to change: table 'visits' is as given."


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "ddl").mkdir()
    path = tmp_path / "ddl" / "visits.sql"
    path.write_text(DDL)
    return path.resolve()


def path_in(document: Any) -> str:
    return str(document["connectors"][0]["transport"]["config"]["path"])


def test_one_file_is_one_table_from_every_folder(
    home: Path, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def cli(*words: str, code: int = 0) -> str:
        capsys.readouterr()
        assert run(["--home", str(home), "table", *words]) == code
        out, said = capsys.readouterr()
        return out + said

    monkeypatch.chdir(file.parent)
    cli("create", "-f", file.name)
    exported = json.loads(cli("export", "visits"))
    assert path_in(exported["realtime"]) == str(file.parent / "in" / "a.csv")
    monkeypatch.chdir(tmp_path)
    assert UNCHANGED in cli("apply", "--dry-run", "-f", "ddl/visits.sql")
    (tmp_path / "e.json").write_text(json.dumps(exported))
    assert UNCHANGED in cli("apply", "-f", "e.json")
    pointer = "/connectors/files/transport/config/path"
    assert "'b.csv' is relative" in cli("validate", "-f", "ddl/visits.sql", "--set", f"{pointer}=b.csv", code=1)
    assert '{"path": "/b.csv"}' in cli("apply", "--dry-run", "-f", "ddl/visits.sql", "--set", f"{pointer}=/b.csv")


def test_documents_without_a_file_need_absolute_paths(home: Path) -> None:
    home.mkdir()
    here = hybrid.connect(home)
    (pasted,) = TableDocuments.from_statements(DDL, "Document")
    for refused in (here.create_table, here.apply_table, here.validate):
        with pytest.raises(SpecError, match=r"Document: visits: connectors\[0\].*'in/a.csv' is relative"):
            refused(pasted.documents)
    assert here.table_names() == []


def test_an_older_definition_keeps_its_relative_path(home: Path, file: Path) -> None:
    """Its own documents may come without a file, and its file makes the path absolute."""
    here = _older(home, file)
    (config,) = here.spec("visits").connectors
    assert str(config.transport) == "FileInput(path='in/a.csv', follow=False)"
    export = here.table("visits").export()
    assert here.apply_table(export.documents()).sentence == UNCHANGED
    assert put_schema(here.context, dict(export.schema), "body").name == "visits"
    (declared,) = TableDocuments.from_ddl(file)
    (change,) = here.apply_table(declared.documents, dry_run=True).changes
    assert RELATIVE in change and f'"path": "{file.parent}/in/a.csv"' in change


def _older(home: Path, file: Path) -> Hybrid:
    """A home with a table whose definition was stored before paths were made absolute."""
    home.mkdir()
    here = hybrid.connect(home)
    (declared,) = TableDocuments.from_ddl(file)
    here.create_table(declared.documents)
    definition = here.context.definitions.find("visits")
    assert definition is not None and definition.realtime_doc is not None
    text = json.dumps(definition.realtime_doc).replace(f"{file.parent}/in/", "in/")
    assert RELATIVE in text
    here.context.definitions.replace(replace(definition, realtime_doc=json.loads(text)))
    return here
