"""The client of a server: its address, whose login is used and never shown, and connections that are lost."""

from __future__ import annotations

import socket
import threading
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.cli.command import Cli
from hybrid.cli.dispatch import client_of
from hybrid.cli.main import run
from hybrid.errors import MachineError, UsageError
from hybrid.progress import Silent
from hybrid.rpc.client import Client

LOGIN = "http://ada:se%40cret@127.0.0.1:1"
BASIC = f"Basic {b64encode(b'ada:se@cret').decode()}"


def sent(client: Client | None) -> Any:
    assert client is not None
    return vars(client)["_headers"].get("Authorization")


@pytest.mark.parametrize("secret", [None, "of the environment"])
@pytest.mark.parametrize("address", [LOGIN, LOGIN.removeprefix("http://")])
def test_a_login_counts_before_another_secret_and_is_not_shown(address: str, secret: str | None) -> None:
    client = Client(address, Silent(), secret)
    assert sent(client) == BASIC and client.url.endswith("127.0.0.1:1")
    assert "ada" not in client.url and "se%40cret" not in client.url
    assert sent(Client("127.0.0.1:1", Silent(), secret)) == (None if secret is None else f"Bearer {secret}")


@pytest.mark.parametrize("wrong", ["ftp://ada:secret@h", "http://ada:secret@h:port", "ada:secret@", "http://[::1"])
def test_what_is_no_address_is_said_without_its_login(wrong: str) -> None:
    with pytest.raises(UsageError, match="is not a server's address") as raised:
        Client(wrong, Silent())
    assert "secret" not in str(raised.value)


def test_python_takes_a_login_or_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYBRID_TOKEN", "of the environment")
    hy = hybrid.connect(LOGIN)
    assert sent(vars(hy)["_client"]) == BASIC and repr(hy) == "<Hybrid http://127.0.0.1:1>"
    with pytest.raises(UsageError, match="has a login, and `token` is another"):
        hybrid.connect(LOGIN, token="another")


def test_a_command_takes_a_login_or_a_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HYBRID_TOKEN", "of the environment")
    home = ["--home", str(tmp_path / "home")]
    cli = Cli()
    cli.given = {"home": home[1], "server": LOGIN}
    assert sent(client_of(cli)) == BASIC
    assert run([*home, "--server", LOGIN, "--token", "another", "table", "list"]) == 2
    assert "has a login, and --token is another" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["config", "show"], ["ingest", "orders"], ["backup", "restore", "x"], ["table"]])
@pytest.mark.parametrize("address", [LOGIN, LOGIN.removeprefix("http://")])
def test_messages_have_no_login(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], address: str
) -> None:
    run(["--home", str(tmp_path / "home"), "--server", address, *words])
    assert "127.0.0.1:1" in (said := capsys.readouterr().err) and "se%40cret" not in said


@pytest.mark.parametrize("address", [LOGIN, LOGIN.removeprefix("http://")])
def test_settings_show_no_login(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], address: str
) -> None:
    monkeypatch.setenv("HYBRID_SERVER", address)
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path))
    assert run(["--json", "config", "show"]) == 0
    said = capsys.readouterr().out
    assert "127.0.0.1:1" in said and "cret" not in said.replace("secret of an account", "")


@pytest.mark.parametrize(
    ("verb", "words"),
    [("move", "A change may be done there"), ("query", "does not answer"), ("status", "does not answer")],
)
def test_an_answer_that_is_lost_may_be_of_something_done(verb: str, words: str) -> None:
    """The server takes the request, and is killed."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def take() -> None:
            connection, _ = server.accept()
            connection.recv(65536)
            connection.close()

        thread = threading.Thread(target=take)
        thread.start()
        with pytest.raises(MachineError, match=words):
            Client(f"http://127.0.0.1:{server.getsockname()[1]}", Silent()).call(verb, {})
        thread.join()


@pytest.mark.parametrize("verb", ["move", "query"])
def test_a_server_that_is_not_there_has_done_nothing(verb: str) -> None:
    with pytest.raises(MachineError, match="does not answer"):
        Client("http://127.0.0.1:1", Silent()).call(verb, {})
