"""Which home a command works on, who may, and how a program learns of an error."""

from __future__ import annotations

import base64
import io
import json
import sys
from pathlib import Path

import pytest

import hybrid
from hybrid.cli.main import run
from hybrid.errors import NotFoundError
from hybrid.home.accounts import Accounts, Right
from tests.operations.tables.test_change import given
from tests.serve.app import OFFLINE, SCHEMA

NOWHERE = [
    ["status"],
    ["table", "list"],
    ["table", "drop", "orders", "--yes"],
    ["query", "select 1"],
    ["query", "select * from orders"],
    ["move", "orders"],
    ["ingest", "orders"],
    ["ingest", "orders", "--until-caught-up"],
    ["backfill", "list"],
    ["task", "list"],
    ["flow", "list"],
    ["logs"],
    ["doctor"],
    ["kafka", "stop"],
    ["access", "list"],
    ["boundary", "show", "orders"],
]


@pytest.mark.parametrize("words", NOWHERE, ids=" ".join)
def test_a_home_that_does_not_exist_is_named(
    home: Path, words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["--home", str(home), *words]) == 1
    assert f"The home {home} (--home) does not exist." in capsys.readouterr().err
    monkeypatch.setenv("HYBRID_HOME", str(home))
    assert run(words) == 1
    assert f"The home {home} (HYBRID_HOME) does not exist." in capsys.readouterr().err
    assert not home.exists()


def test_python_names_it_too(home: Path) -> None:
    nowhere = hybrid.connect(home)
    for look in (
        nowhere.table_names,
        nowhere.status,
        nowhere.runs,
        nowhere.flows,
        nowhere.schedules,
        nowhere.backfills.statuses,
        lambda: nowhere.table("orders"),
        lambda: nowhere.query("select * from orders"),
        lambda: nowhere.drop_table("orders"),
        lambda: nowhere.undrop_table("orders"),
    ):
        with pytest.raises(NotFoundError, match=r"The home .* does not exist"):
            look()
    assert not home.exists()
    nowhere.create_table(given("INT"))
    assert nowhere.table_names() == ["orders"]


def test_an_empty_home_is_one(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home.mkdir()
    assert run(["--home", str(home), "status"]) == 0
    assert "No tables yet" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["logs"], ["doctor"], ["access", "list"], ["flow", "run", "x.py"]], ids=" ".join)
def test_a_server_that_cannot_be_asked_is_refused(
    home: Path, words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home.mkdir()
    assert run(["--home", str(home), "--server", "http://far:9000", *words]) == 2
    said = capsys.readouterr().err
    assert "cannot ask the server at http://far:9000" in said and "on the server's machine" in said
    monkeypatch.setenv("HYBRID_SERVER", "http://far:9000")
    monkeypatch.setenv("HYBRID_HOME", str(home))
    assert run(words) == 2


@pytest.mark.parametrize(
    "words",
    [
        ["kafka", "start"], ["kafka", "stop"], ["kafka", "status"], ["kafka", "topic", "list"], ["serve"], ["setup"],
        ["kafka", "topic", "create", "t"], ["kafka", "produce", "t", "pyproject.toml"], ["config", "show"], ["demo"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_server_that_is_named_in_vain_is_refused(home: Path, words: list[str]) -> None:
    home.mkdir()
    assert run(["--home", str(home), "--server", "http://far:9000", *words]) == 2


def test_a_token_counts_where_no_server_runs(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hybrid.connect(home).create_table(given("INT"))
    here = ["--home", str(home)]
    assert run([*here, "--token", "any", "table", "list"]) == 0, "nothing to check it against"
    _, reader = Accounts(home).add("reader", Right.READ)
    _, admin = Accounts(home).add("admin", Right.ADMIN)
    capsys.readouterr()
    for words in (
        ["table", "drop", "orders", "--yes"], ["access", "remove", "admin"], ["doctor", "--repair"],
        ["warehouse", "push"], ["warehouse", "pull"], ["warehouse", "pull", "--take-over", "--yes"],
        ["warehouse", "sync"],
    ):  # fmt: skip
        assert run([*here, "--token", reader, *words]) == 1
        assert "Account 'reader' has the right read" in capsys.readouterr().err
    for words in (["table", "list"], ["logs"], ["doctor"], ["warehouse", "show"], ["warehouse", "sync"]):
        assert run([*here, "--token", "wrong", *words]) == 1
        assert "has this secret" in capsys.readouterr().err
    assert run([*here, "--token", reader, "table", "show", "orders"]) == 0
    assert run([*here, "table", "show", "orders"]) == 0
    assert run([*here, "--token", admin, "table", "drop", "orders", "--yes"]) == 0


@pytest.mark.parametrize(
    ("words", "code", "kind"),
    [
        (["--json", "table", "show", "ordres"], 1, "not-found"),
        (["table", "show", "ordres", "--json"], 1, "not-found"),
        (["--format", "jsonl", "query", "selec 1"], 1, "query"),
        (["table", "nope", "--json"], 2, "usage"),
        (["table", "show", "--json"], 2, "usage"),
        (["tabel", "list", "--format", "json"], 2, "usage"),
        (["tabel", "list", "--format=json"], 2, "usage"),
        (["table", "nope", "--format", "jsonl"], 2, "usage"),
        (["table", "nope", "--format=jsonl"], 2, "usage"),
    ],
)
def test_an_error_as_json(
    home: Path, words: list[str], code: int, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hybrid.connect(home).create_table(given("INT"))
    assert run(["--home", str(home), *words]) == code
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert list(document) == ["code", "message", "hint"] and document["code"] == kind
    assert f"error: {document['message']}" in err


def test_drop_and_undrop_as_json(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hybrid.connect(home).create_table(given("INT"))
    for verb, begins in (("drop", "Dropped table 'orders'"), ("undrop", "Table 'orders' is back")):
        assert run(["--home", str(home), "table", verb, "orders", "--json", "--yes"][: 7 if verb == "drop" else 6]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["table"] == "orders" and document["sentence"].startswith(begins)


@pytest.mark.parametrize("words", [["query"], ["query", "-"], ["query", "-f", "-"]], ids=" ".join)
def test_a_statement_by_standard_input(
    home: Path, words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hybrid.connect(home).create_table(given("INT"))
    for text, code in (("select count(*) c from orders\n", 0), ("\n", 2)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        assert run(["--home", str(home), "--json", *words]) == code
        out = json.loads(capsys.readouterr().out)
        assert out == [{"c": 0}] if code == 0 else "no statement" in out["message"]


def test_pinots_credentials_count_too(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, reader = Accounts(home).add("reader", Right.READ)
    _, admin = Accounts(home).add("admin", Right.ADMIN)
    schema, config = tmp_path / "schema.json", tmp_path / "config.json"
    schema.write_text(json.dumps(SCHEMA))
    config.write_text(json.dumps(OFFLINE))
    files = ["-schemaFile", str(schema), "-tableConfigFile", str(config), "-exec"]
    add = ["--home", str(home), "admin", "AddTable", *files]
    basic = base64.b64encode(f"reader:{reader}".encode()).decode()
    for given_ in (["-user", "reader", "-password", reader], ["-authToken", f"Basic {basic}"], ["-authToken", reader]):
        assert run([*add, *given_]) == 1
        assert "Account 'reader' has the right read" in capsys.readouterr().err
    assert run([*add, "-authToken", "Bearer wrong"]) == 1 and run([*add, "-authToken", "Basic x"]) == 2
    assert run([*add, "-authToken", f"Bearer {admin}"]) == 0
