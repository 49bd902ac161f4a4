"""`hybrid access`, and where a secret is given and never shown."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import threading
from pathlib import Path

import pytest

from hybrid.cli.error_report import without_secret
from hybrid.cli.main import run
from hybrid.errors import HybridError
from hybrid.home.accounts import Accounts, Right
from hybrid.jvm.process import Process
from hybrid.rpc.client import secret_of


def test_add_list_remove(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there = ["--home", str(home)]
    assert run([*there, "access", "add", "grafana", "--right", "read"]) == 0
    secret, said = capsys.readouterr()
    assert len(secret.strip()) == 64 and secret.strip() not in said and "not shown again" in said
    assert run([*there, "access", "add", "ci@example.org", "--right", "operate", "--json"]) == 0
    added = json.loads(capsys.readouterr().out)
    assert list(added) == ["name", "right", "created_at", "secret"] and added["right"] == "operate"
    assert run([*there, "access", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(one["name"], one["right"]) for one in listed] == [("grafana", "read"), ("ci@example.org", "operate")]
    assert run([*there, "access", "remove", "grafana"]) == 0
    assert [one.name for one in Accounts(home).list()] == ["ci@example.org"]


def test_a_home_that_did_not_exist_is_named(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A mistyped --home would else take an account that the meant server never sees."""
    for name, is_new in (("ada", True), ("bob", False)):
        assert run(["--home", str(home), "access", "add", name, "--right", "read"]) == 0
        assert (f"{home} did not exist: it is a new home now" in capsys.readouterr().err) is is_new


def test_the_file_holds_no_secret_and_is_private(home: Path) -> None:
    account, secret = Accounts(home).add("ada", Right.ADMIN)
    path = home / "access.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and secret not in path.read_text()
    assert account.digest == hashlib.sha256(secret.encode()).hexdigest()
    assert Accounts(home).list() == (account,) and [one.name for one in home.iterdir()] == ["access.json"]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["add", "ada", "--right", "read"], 4, "Account 'ada' exists already."),
        (["add", "a:b", "--right", "read"], 2, "'a:b' is no name for an account"),
        (["add", "", "--right", "read"], 2, "is no name for an account"),
        (["add", "x" * 65, "--right", "read"], 2, "is no name for an account"),
        (["add", "bob"], 2, "Missing option '--right'"),
        (["add", "bob", "--right", "all"], 2, "'all' is not one of"),
        (["remove", "adda"], 1, "Account 'adda' does not exist. Did you mean 'ada'?"),
    ],
)
def test_what_is_refused(
    home: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, says: str
) -> None:
    Accounts(home).add("ada", Right.READ)
    assert run(["--home", str(home), "access", *words]) == code
    assert says in capsys.readouterr().err and [one.name for one in Accounts(home).list()] == ["ada"]


def test_two_at_once_lose_nothing(home: Path) -> None:
    names = [f"n{number}" for number in range(20)]
    threads = [threading.Thread(target=Accounts(home).add, args=(name, Right.READ)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {one.name for one in Accounts(home).list()} == set(names)


def test_a_damaged_file_is_named(home: Path) -> None:
    home.mkdir()
    (home / "access.json").write_text('{"accounts": 7}')
    with pytest.raises(HybridError, match=r"access\.json cannot be read"):
        Accounts(home).add("ada", Right.READ)


def test_a_secret_is_not_shown(home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(["--home", str(home), "--token", "s3cret", "config", "show", "--json"]) == 0
    out = capsys.readouterr().out
    assert "s3cret" not in out
    (row,) = [one for one in json.loads(out) if one["name"] == "token"]
    assert (row["value"], row["source"]) == ("(hidden)", "flag")
    args = ["--token", "s3cret", "query", "--token=s3cret", "select 1"]
    assert without_secret(args) == ["--token", "...", "query", "--token=...", "select 1"]


def test_the_homes_secret_goes_to_its_own_server_alone(home: Path) -> None:
    home.mkdir()
    assert secret_of(home, "http://127.0.0.1:9000") is None
    own = Process.of(os.getpid())
    assert own is not None
    known = {"url": "http://127.0.0.1:9000", "broker_url": "http://127.0.0.1:8099", "secret": "s"}
    own.save(home / "server.json", **known)
    for url in ("http://127.0.0.1:9000", "http://127.0.0.1:9000/", "localhost:8099", "http://localhost:9000"):
        assert secret_of(home, url) == "s"
    for url in (
        "https://127.0.0.1:9000",
        "http://127.0.0.1:9001",
        "http://10.0.0.1:9000",
        "http://evil/127.0.0.1:9000",
    ):
        assert secret_of(home, url) is None
