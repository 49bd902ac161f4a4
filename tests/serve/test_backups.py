"""Backups over HTTP: queued as runs, in folders of the server's machine, for administrators."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from hybrid.api.hybrid import Hybrid
from hybrid.config.settings import load_settings
from hybrid.home.accounts import Accounts, Right
from hybrid.progress import Silent
from hybrid.rpc.client import Client
from hybrid.rpc.queue import carry_out
from tests.serve.app import App, Worker


@pytest.mark.slow
def test_backups_over_http(orders: App, tmp_path: Path) -> None:
    store = str(tmp_path / "backups")
    with Worker(orders.home):
        made = orders.ok("POST", "/backups", {"directory": store})
        again = Client(orders.url, Silent()).call("backup_create", {"directory": store, "tables": ["orders"]})
        assert made["tables"].keys() == again["tables"].keys() == {"orders"} and again["files_new"] < made["files_new"]
        listed = orders.ok("POST", "/backups/list", {"directory": store})
        assert [found["id"] for found in listed] == [again["id"], made["id"]]
        assert orders.ok("POST", "/backups/verify", {"directory": store})["sound"]
        gone = orders.ok("DELETE", f"/backups/{made['id']}?directory={quote(store)}")
        assert gone["sentence"].startswith(f"Deleted backup {made['id']}")
        runs = orders.home.runs()
        assert {(run.table_name, run.type, run.state) for run in runs} == {("*", "backup", "DONE")} and len(runs) == 4
        assert orders.refused("POST", "/backups", {"directory": store, "tables": ["nope"]})[0] == 404
        assert orders.refused("POST", "/backups", {"directory": str(orders.home.home / "in")})[0] == 400
        assert orders.refused("POST", "/backups", {"directory": "/proc/1"})[0] == 403
        assert orders.refused("POST", "/backups/list", {"directory": str(tmp_path)})[0] == 400
        (tmp_path / "empty").mkdir()
        assert orders.refused("POST", "/backups/list", {"directory": str(tmp_path / "empty")})[0] == 404
    new = Hybrid(load_settings(home=tmp_path / "new"), Silent())
    assert new.backups.restore(store).tables == again["tables"]
    new.close()


@pytest.mark.slow
def test_a_run_that_is_taken_up_again_makes_one_backup(orders: App, tmp_path: Path) -> None:
    store = str(tmp_path / "backups")
    runs = orders.home.context.catalog.runs
    orders.call("POST", "/verbs/backup_create", {"directory": store})
    for _ in range(2):  # its process dies before the outcome is recorded
        run = runs.claim()
        assert run is not None
        carry_out(orders.home, run, lambda: True)
        with runs._engine.begin() as connection:
            connection.exec_driver_sql(
                "UPDATE runs SET state = 'QUEUED', arguments = ?", (f'{{"directory": "{store}"}}',)
            )
    assert len(orders.home.backups.list(store)) == 1


def test_only_administrators(orders: App, tmp_path: Path) -> None:
    secret = Accounts(orders.home.home).add("ops", Right.OPERATE)[1]
    headers = {"Authorization": f"Bearer {secret}"}
    for method, path, body in (
        ("POST", "/backups", {"directory": str(tmp_path / "b")}),
        ("POST", "/backups/list", {"directory": str(tmp_path / "b")}),
        ("POST", "/backups/verify", {"directory": str(tmp_path / "b")}),
        ("DELETE", f"/backups/x?directory={quote(str(tmp_path / 'b'))}", None),
        ("POST", "/verbs/backup_list", {"directory": str(tmp_path / "b")}),
    ):
        deadline = 50
        while (status := orders.call(method, path, body, headers=headers)[0]) != 403 and deadline:
            deadline -= 1
        assert status == 403, path
    assert not (tmp_path / "b").exists()


@pytest.mark.slow
def test_a_list_obeys_the_rules_of_the_server_too(orders: App, tmp_path: Path) -> None:
    """With input_folders and no accounts only these folders may be used, by a list as by a backup."""
    store = tmp_path / "backups"
    orders.home.backups.create(store)
    listed = {"directory": str(store)}
    for path in ("/backups/list", "/verbs/backup_list"):
        assert orders.call("POST", path, listed)[0] == 200
    allowed = load_settings(home=orders.home.home, flags={"input_folders": str(tmp_path / "in")}).values
    vars(orders.home.settings)["values"] = allowed
    for path in ("/backups/list", "/backups/verify", "/verbs/backup_list", "/verbs/backup_verify"):
        assert orders.call("POST", path, listed)[0] == 403, path


@pytest.mark.slow
def test_readers_do_not_see_where_backups_lie(orders: App, tmp_path: Path) -> None:
    store = tmp_path / "backups"
    orders.home.backups.create(store)
    (run,) = orders.home.runs()
    orders.home.context.catalog.runs.finish(run.id, "DONE", str(run.result), report={"directory": str(store)})
    for name, right in (("ada", Right.READ), ("root", Right.ADMIN)):
        headers = {"Authorization": f"Bearer {Accounts(orders.home.home).add(name, right)[1]}"}
        for _ in range(50):  # the server reads the accounts again within a moment
            status, answer = orders.call("GET", f"/runs/{run.id}", headers=headers)
            if status == 200:
                break
        assert status == 200 and answer["type"] == "backup" and answer["state"] == "DONE"
        assert (str(store) in str(answer)) == (right is Right.ADMIN)
