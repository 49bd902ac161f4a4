"""`hybrid serve --stop`: ends the server of a home, and waits until it has ended."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from hybrid.errors import MachineError, NotFoundError
from hybrid.jvm.process import Process
from hybrid.rpc.client import server_record

_END_S = 30.0  # a server ends within 10 s
_POLL_S = 0.05


def stop_server(home: Path, end_s: float = _END_S) -> str:
    """Ends the server that runs on a home, as Ctrl-C there does. Returns a sentence.

    NotFoundError when none runs. MachineError when its process belongs to another user, or goes on after `end_s`
    seconds: it is not killed, because its other processes would start it again.
    """
    record = server_record(home)
    if record is None:
        raise NotFoundError(f"No server runs on {home}.", hint="hybrid serve starts one.")
    words = f"The server at {record.url} (process {record.process.pid})"
    try:
        _terminate(record.process)
    except PermissionError as error:
        raise MachineError(
            f"{words} belongs to another user of this machine.", hint="Run `hybrid serve --stop` as that user."
        ) from error
    deadline = time.monotonic() + end_s
    while record.process.is_alive():
        if time.monotonic() > deadline:
            raise MachineError(f"{words} has not ended within {end_s:g} s.", hint="Its log says why: hybrid logs")
        time.sleep(_POLL_S)
    return f"{words} has ended."


def _terminate(process: Process) -> None:
    """Send SIGTERM to this very process: one with its number that started later gets none."""
    if not hasattr(os, "pidfd_open"):  # macOS
        if process.is_alive():
            os.kill(process.pid, signal.SIGTERM)
        return
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        if process.is_alive():  # checked while the descriptor holds on to it
            signal.pidfd_send_signal(descriptor, signal.SIGTERM)
    except ProcessLookupError:
        pass
    finally:
        os.close(descriptor)
