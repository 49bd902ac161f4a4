"""`hybrid serve --stop` ends the process that the home's `server.json` names, and no other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid.cli.main import run
from hybrid.errors import MachineError
from hybrid.jvm.process import Process
from hybrid.rpc.client import SERVER_FILE
from hybrid.serve import stop

pytestmark = pytest.mark.process
URL = "http://127.0.0.1:9000"
_IGNORING = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)"
_ENDING = "import time; print(flush=True); time.sleep(60)"


def started(home: Path, code: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands for a server, with its record."""
    home.mkdir(exist_ok=True)
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert child.stdout is not None and child.stdout.readline()
    process = Process.of(child.pid)
    assert process is not None
    process.save(home / SERVER_FILE, url=URL)
    yield child
    child.kill()
    child.wait()
    child.stdout.close()


@pytest.fixture
def server(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    yield from started(home, _ENDING)


def test_it_ends_the_server_and_says_so(
    home: Path, server: subprocess.Popen[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--home", str(home), "serve", "--stop"]
    assert run([*words, "--json"]) == 0
    said = capsys.readouterr()
    assert f"The server at {URL} (process {server.pid}) has ended." in said.err
    assert json.loads(said.out) == {"sentence": f"The server at {URL} (process {server.pid}) has ended."}
    assert Process.of(server.pid) is None
    assert run(words) == 1  # the record is still there, and its process is not
    said = capsys.readouterr()
    assert f"No server runs on {home}." in said.err and "hint: hybrid serve starts one." in said.err


def test_another_process_with_its_number_is_left_alone(
    home: Path, server: subprocess.Popen[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    record = json.loads((home / SERVER_FILE).read_text())
    (home / SERVER_FILE).write_text(json.dumps({**record, "started": "1"}))
    assert run(["--home", str(home), "serve", "--stop"]) == 1
    assert "No server runs on" in capsys.readouterr().err and server.poll() is None
    stop._terminate(Process(server.pid, "1"))  # the number was given to another process just now
    assert server.poll() is None


def test_one_that_does_not_end_is_named_and_not_killed(home: Path) -> None:
    for child in started(home, _IGNORING):
        with pytest.raises(MachineError, match=rf"\(process {child.pid}\) has not ended within 0.2 s") as caught:
            stop.stop_server(home, end_s=0.2)
        assert caught.value.hint == "Its log says why: hybrid logs" and child.poll() is None


def test_a_process_of_another_user(
    home: Path, server: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr("signal.pidfd_send_signal", refuse, raising=False)
    monkeypatch.setattr(os, "kill", refuse)
    with pytest.raises(MachineError, match="belongs to another user"):
        stop.stop_server(home)
    monkeypatch.undo()
    assert server.poll() is None


def test_it_works_on_a_home_of_this_machine(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--home", str(home), "serve", "--stop"]) == 1
    assert "home" in capsys.readouterr().err
    assert run(["--home", str(home), "serve", "--stop", "--server", URL]) == 2
    assert "works on a home of this machine" in capsys.readouterr().err
