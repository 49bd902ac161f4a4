"""What a process has started does not outlive it, however it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hybrid.jvm.process import Process
from tests.watchdog import ROOT

pytestmark = pytest.mark.process

# The second process stands for the broker of a home: it is recorded as one is.
STARTER = """
import subprocess, sys, time
from pathlib import Path
from hybrid.jvm.process import Process
from tests.watchdog import watch, watched_broker

server, broker, stopped = (subprocess.Popen(["sleep", "600"], start_new_session=True) for _ in range(3))
watch(server)
watch(stopped)
stopped.kill()
stopped.wait()
home = Path(sys.argv[1])
local = watched_broker(home)
local.folder.mkdir(parents=True)
Process.of(broker.pid).save(local.folder / "broker.json", address="127.0.0.1:1")
print(server.pid, broker.pid, flush=True)
if sys.argv[2] == "wait":
    time.sleep(600)
"""


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL, None], ids=["terminated", "killed", "by itself"])
def test_what_was_started_ends_with_its_starter(tmp_path: Path, end: signal.Signals | None) -> None:
    command = [sys.executable, "-c", STARTER, str(tmp_path), "end" if end is None else "wait"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        started = [Process.of(int(pid)) for pid in starter.stdout.readline().split()]
        if end is not None:
            assert len(started) == 2 and all(process is not None and process.is_alive() for process in started)
            starter.send_signal(end)
        starter.wait()
    deadline = time.monotonic() + 20
    while any(process is not None and process.is_alive() for process in started):
        assert time.monotonic() < deadline, "it was left running"
        time.sleep(0.02)
