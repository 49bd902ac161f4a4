"""What a connection to a server has of a local one, and what refuses a server, an account or an address."""

from __future__ import annotations

import inspect
import time
from pathlib import Path

import pytest

import hybrid
from hybrid.api.hybrid import Hybrid
from hybrid.api.table import Table
from hybrid.errors import AccessError, MachineError, RightError, UsageError
from hybrid.home.accounts import Accounts, Right
from hybrid.rpc.local_only import LocalOnly
from hybrid.rpc.remote_hybrid import RemoteHybrid
from hybrid.rpc.remote_table import RemoteTable
from tests.serve.app import OFFLINE, SCHEMA, App


def test_a_remote_object_has_the_methods_of_a_local_one() -> None:
    for local, remote in ((Hybrid, RemoteHybrid), (Table, RemoteTable)):
        for name, method in vars(local).items():
            own = vars(remote).get(name)
            if name.startswith("_") or own is None or isinstance(own, LocalOnly) or isinstance(method, property):
                continue
            assert list(inspect.signature(method).parameters) == list(inspect.signature(own).parameters), name


def test_a_method_that_is_added_here_is_added_there() -> None:
    inherited = {Hybrid: {"aquery", "of"}, Table: set[str]()}
    for local, remote in ((Hybrid, RemoteHybrid), (Table, RemoteTable)):
        missing = {name for name in vars(local) if not name.startswith("_")} - vars(remote).keys()
        served = {"cached_sizes", "cached_streams", "query_at_once", "serve_from_memory"} if local is Hybrid else set()
        assert missing - served == inherited[local]


def test_a_server_that_is_not_there() -> None:
    hy = hybrid.connect("http://127.0.0.1:9")
    with pytest.raises(MachineError, match="does not answer"):
        hy.table_names()
    with pytest.raises(UsageError, match="not a server's address"):
        hybrid.connect("ftp://127.0.0.1:9")
    with pytest.raises(UsageError, match="token is for a server"):
        hybrid.connect("./home", token="secret")


@pytest.mark.slow
def test_accounts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = App(tmp_path / "home")
    try:
        _, reader = Accounts(server.home.home).add("reader", Right.READ)
        time.sleep(1.1)  # a server looks at the accounts once a second
        with pytest.raises(AccessError):
            hybrid.connect(server.url).table_names()
        with pytest.raises(AccessError):
            hybrid.connect(server.url, token="wrong").table_names()
        hy = hybrid.connect(server.url, token=reader)
        assert hy.table_names() == []
        with pytest.raises(RightError):
            hy.create_table(SCHEMA, OFFLINE)
        monkeypatch.setenv("HYBRID_TOKEN", reader)
        assert hybrid.connect(server.url).table_names() == []
    finally:
        server.close()


def test_a_password_in_the_address_is_not_shown() -> None:
    assert repr(hybrid.connect("http://me:secret@127.0.0.1:9")) == "<Hybrid http://127.0.0.1:9>"
