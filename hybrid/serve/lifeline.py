"""The succession after a crash of `hybrid serve`: what its processes of either role watch, and who takes its place."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence

from hybrid.api.hybrid import Hybrid
from hybrid.errors import ConflictError
from hybrid.serve.supervisor import LIFELINE, SOCKETS, SUCCESSOR, serve_lock

_LOG = logging.getLogger(__name__)
# The query process holds the sockets, so it goes first.
GRACE_S = {"query": 1.0, "pipeline": 4.0}


def watch_lifeline(
    role: str, sockets: Sequence[socket.socket], options: Sequence[str], is_ending: Callable[[], bool]
) -> None:
    """Watch for a crash of `hybrid serve`: call `is_ending`, and become its successor unless it returns True."""
    number = os.environ.get(LIFELINE)
    if number is None:
        return

    def watch() -> None:
        while os.read(int(number), 1):
            pass
        if is_ending():
            return
        _LOG.error("`hybrid serve` has died; the %s process takes its place unless somebody else does.", role)
        time.sleep(GRACE_S[role])
        if not is_ending():
            _become_serve(options, sockets)

    threading.Thread(target=watch, name="lifeline", daemon=True).start()


def succeed(home: Hybrid, options: Sequence[str]) -> None:
    """Become `hybrid serve` if none runs on the home."""
    try:
        with serve_lock(home.home, 0.0):
            pass
    except ConflictError:
        return
    _become_serve(options, ())


def _become_serve(options: Sequence[str], sockets: Sequence[socket.socket]) -> None:
    environ = {name: value for name, value in os.environ.items() if name not in {LIFELINE, SOCKETS}}
    environ[SUCCESSOR] = "1"
    if sockets:
        environ[SOCKETS] = ",".join(str(listener.fileno()) for listener in sockets)
    os.execve(sys.executable, [sys.executable, "-m", "hybrid.cli", *options], environ)


def ignore_terminal() -> None:
    """Ignore Ctrl-C and a closed terminal: they reach the whole group, but `hybrid serve` ends its processes itself."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
