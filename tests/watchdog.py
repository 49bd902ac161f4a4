"""Stops servers that this process has started, once this process has ended: also when it was killed.

A killed process runs no `finally`, and what it has started goes on without it. So one more process, the watchdog, is
started with the first server. It reads what it has to stop from a pipe that nobody else writes to: the pipe ends when
this process does, however that happens.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from hybrid.jvm.broker import LocalBroker
from hybrid.jvm.process import Process

ROOT = Path(__file__).resolve().parents[1]
_GRACE_S = 15.0
# What formatting leaves in a broker's data folder, and the content that the first broker of this process had.
_OF_FORMAT = ("meta.properties", "bootstrap.checkpoint")
_FORMATTED: dict[str, bytes] = {}
# What stops them is imported when it is needed, which is seldom.
_WATCH = "import sys; lines = sys.stdin.readlines(); from tests.watchdog import stop_all; stop_all(lines)"


def watch(process: subprocess.Popen[Any]) -> None:
    """Have a process stopped that still runs when this one has ended."""
    running = Process.of(process.pid)
    if running is not None:
        _send(vars(running))


def watched_broker(home: Path, *, formats: bool = False) -> LocalBroker:
    """The local broker of a home, to be started. It is stopped if it still runs when this process has ended.

    Unless it `formats` its data folder, that is made as an earlier broker left its own: formatting takes a JVM.
    """
    _send({"broker": str(home)})  # before it starts: that takes seconds
    broker = LocalBroker(home)
    if _FORMATTED and not formats:
        _data_of(broker).mkdir(parents=True)
        for name, content in _FORMATTED.items():
            (_data_of(broker) / name).write_bytes(content)
    return broker


@contextmanager
def running_broker(home: Path) -> Iterator[str]:
    """The address of a local broker that runs until the end of the block, or of this process."""
    broker = watched_broker(home)
    try:
        address = broker.start(port=0)
        for name in _OF_FORMAT:
            _FORMATTED[name] = (_data_of(broker) / name).read_bytes()
        yield address
    finally:
        broker.stop()


def _data_of(broker: LocalBroker) -> Path:
    return broker.folder / "data"


def stop_all(lines: Sequence[str]) -> None:
    """In the watchdog: stop what still runs. Servers that were started last stop first, as they use the others."""
    for server in map(json.loads, reversed(lines)):
        if "broker" in server:
            LocalBroker(Path(server["broker"])).stop()
        else:
            Process(**server).stop(_GRACE_S)


def _send(server: dict[str, Any]) -> None:
    watchdog = _watchdog(os.getpid())
    assert watchdog.stdin is not None
    watchdog.stdin.write(json.dumps(server) + "\n")
    watchdog.stdin.flush()


@cache
def _watchdog(pid: int) -> subprocess.Popen[str]:
    """The watchdog of this process: one that is forked from it gets its own."""
    return subprocess.Popen(
        [sys.executable, "-c", _WATCH],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        start_new_session=True,  # Ctrl-C of a terminal is not for it
    )
