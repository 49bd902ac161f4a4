"""A copied home (`cp -a`): nothing that the copy does reaches the server, the broker or the JVM of the original."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import hybrid
from hybrid.cli.main import run
from hybrid.jvm.broker import LocalBroker
from hybrid.jvm.process import Process
from hybrid.lake.lock import half_lock, last_holder
from hybrid.rpc.client import SERVER_FILE, secret_of, server_of
from tests.operations.tables.test_change import given

pytestmark = pytest.mark.process

URL = "http://127.0.0.1:1"  # nobody answers there: a command that asks it fails


@pytest.fixture
def other() -> Iterator[Process]:
    """A living process: the original's server, broker or JVM."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        found = Process.of(child.pid)
        assert found is not None
        yield found
        assert child.poll() is None, "it was stopped"
        child.communicate(b"\n")


@pytest.fixture
def original(home: Path, other: Process) -> Path:
    hybrid.connect(home).create_table(given("INT"))
    other.save(home / SERVER_FILE, url=URL, broker_url=URL, secret="s")
    (home / "kafka").mkdir()
    other.save(home / "kafka" / "broker.json", address="127.0.0.1:1")
    return home


@pytest.fixture
def copy(original: Path, tmp_path: Path) -> Path:
    shutil.copytree(original, tmp_path / "copy", symlinks=True)
    return tmp_path / "copy"


def test_commands_act_on_the_copy(original: Path, copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert server_of(original) == URL and server_of(copy) is None
    assert secret_of(original, URL) == "s" and secret_of(copy, URL) is None
    assert run(["--home", str(copy), "status"]) == 0
    assert f"home: {copy}" in capsys.readouterr().err
    assert run(["--home", str(copy), "table", "drop", "orders", "--yes"]) == 0
    assert hybrid.connect(copy).table_names() == []
    assert hybrid.connect(original).table_names() == ["orders"]
    assert run(["--home", str(original), "table", "list"]) == 1  # its own server is asked, and does not answer here


def test_a_home_by_another_name_is_no_copy(original: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(original)
    assert server_of(link) == URL
    moved = original.rename(tmp_path / "moved")
    assert server_of(moved) is None  # its server works on the old path
    assert LocalBroker(moved).address == "127.0.0.1:1"


def test_a_home_restored_in_place_is_another(original: Path, copy: Path) -> None:
    shutil.rmtree(original)
    copy.rename(original)
    assert server_of(original) is None


def test_the_broker_of_the_original_goes_on(
    original: Path, copy: Path, other: Process, capsys: pytest.CaptureFixture[str]
) -> None:
    assert LocalBroker(original).address == "127.0.0.1:1"
    assert LocalBroker(copy).status().state == "stopped"
    assert run(["--home", str(copy), "kafka", "stop"]) == 0
    assert "Kafka was not running" in capsys.readouterr().err
    assert other.is_alive()


def test_the_jvm_of_the_original_is_not_ended(home: Path, tmp_path: Path, other: Process) -> None:
    lock = home / "warehouse" / "orders" / "OFFLINE.lock"
    with half_lock(lock, jvm_pid=other.pid, timeout_s=1, waiting=lambda _: None):
        shutil.copytree(home, tmp_path / "copy")
    copied = tmp_path / "copy" / "warehouse" / "orders" / "OFFLINE.lock"
    assert json.loads(copied.read_text())["jvm"]["pid"] == other.pid and last_holder(copied) == {}
    with half_lock(copied, jvm_pid=None, timeout_s=1, waiting=lambda _: None):
        assert other.is_alive()


def test_the_catalog_forgets_processes_of_the_original(original: Path, tmp_path: Path) -> None:
    catalog = hybrid.connect(original).context.catalog
    catalog.serving.beat("pipeline", "ready")
    with catalog.runs.recorded("run-1", "orders", "ingest"):
        shutil.copytree(original, tmp_path / "copy")
        copied = hybrid.connect(tmp_path / "copy").context.catalog
        assert copied.serving.role("pipeline") is None
        (found,) = copied.runs.list()
        assert found.state == "INTERRUPTED" and "copied from" in str(found.result)
        assert hybrid.connect(original).context.catalog.runs.list()[0].state == "RUNNING"
    role = catalog.serving.role("pipeline")
    assert role is not None and role.pid == os.getpid()
