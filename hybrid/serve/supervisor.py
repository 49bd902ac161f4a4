"""`hybrid serve`: supervises the query and the pipeline process; a crash of any of the three is repaired.

    serve (this one, small)  --starts, watches, starts again with a growing pause-->  query    (HTTP, no JVM)
                                                                                      pipeline (Spark)
It holds the listening sockets: while the query process restarts, new clients wait and are not refused.
The roles hold the read end of a pipe whose write end is here: it closes when this process crashes. They then end, and
one of them becomes the next `hybrid serve` (see `roles.succeed`), unless another has been started meanwhile.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hybrid.config.settings import SERVE_LOCK
from hybrid.errors import ConflictError, MachineError
from hybrid.home.accounts import new_secret
from hybrid.jvm.process import Process
from hybrid.progress import Progress
from hybrid.rpc.client import SERVER_FILE
from hybrid.runtime import durable
from hybrid.runtime.backoff import Backoff
from hybrid.runtime.file_lock import try_lock
from hybrid.runtime.signals import act_on_signals

_LOG = logging.getLogger(__name__)
LIFELINE, SOCKETS = "HYBRID_SERVE_LIFELINE", "HYBRID_SERVE_SOCKETS"
SUCCESSOR = "HYBRID_SERVE_SUCCESSOR"
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_EVERY = {"0.0.0.0": "127.0.0.1", "::": "::1"}
PIPELINE = "pipeline"
ROLES = ("query", PIPELINE)
# The pipeline touches this file every second.
BEAT_FILE = "pipeline.beat"
HUNG_S = 120.0
_TURN_S = 0.05
_PAUSE_S = (0.1, 5.0)
_STEADY_S = 20.0
_END_S = 8.0
_TAKE_OVER_S = 12.0
_BACKLOG = 256
# Planning a small statement in DuckDB allocates thousands of small objects; glibc caches 7 of each size per thread.
# With 200 planning takes a tenth less (docs/adr/0039-malloc-tuning.md). Other C libraries ignore the setting.
_QUICK = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=200"}


@dataclass(frozen=True)
class Address:
    """Where the server listens. Port 0: any free one."""

    host: str = "127.0.0.1"
    port: int = 9000
    broker_port: int = 8099

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in _LOOPBACK


@dataclass
class _Child:
    """A role's process, and the pause before its restart."""

    role: str
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    not_before: float = 0.0
    backoff: Backoff = field(default_factory=lambda: Backoff(*_PAUSE_S))
    starts: int = field(default=0)
    beat: int = 0
    beat_at: float = 0.0


def supervise(home: Path, address: Address, options: Sequence[str], progress: Progress) -> int:
    """Serve until SIGTERM, SIGINT or SIGHUP; return the exit code. `options` are global options for the roles.

    ConflictError if a server runs on the home already; MachineError if a port is taken.
    """
    stop = threading.Event()
    act_on_signals(stop.set, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    with ExitStack() as resources:
        resources.enter_context(serve_lock(home, _TAKE_OVER_S))
        # A stale address: its server crashed, and its roles release the ports within a second or two.
        wait_s = _TAKE_OVER_S if (home / SERVER_FILE).exists() else 0.0
        sockets = inherited_sockets(os.environ) or listening_sockets(address, wait_s)
        for listener in sockets:
            resources.callback(listener.close)
        url = url_of(sockets[0])
        resources.callback((home / SERVER_FILE).unlink, missing_ok=True)
        own = Process.of(os.getpid())
        assert own is not None
        # The secret is for commands on this home; a user who can read it can also change the home itself.
        own.save(home / SERVER_FILE, url=url, broker_url=url_of(sockets[-1]), secret=new_secret())
        every = " and all addresses of this machine" if sockets[0].getsockname()[0] in _EVERY else ""
        progress.say(f"hybrid serves {home} at {url}{every} (broker path: {url_of(sockets[-1])}). Ctrl-C ends it.")
        ports = [listener.getsockname()[1] for listener in sockets]
        where = ["--host", address.host, "--port", str(ports[0]), "--broker-port", str(ports[-1])]
        _Supervisor(home, options, where, sockets, progress).run(stop)
    return 0


class _Supervisor:
    def __init__(
        self,
        home: Path,
        options: Sequence[str],
        where: Sequence[str],
        sockets: Sequence[socket.socket],
        progress: Progress,
        hung_s: float = HUNG_S,
    ) -> None:
        self._home, self._hung_s = home, hung_s
        self._options, self._where, self._sockets, self._progress = options, where, sockets, progress
        self._children = [_Child(role) for role in ROLES]

    def run(self, stop: threading.Event) -> None:
        lifeline, held_end = os.pipe()
        try:
            while not stop.is_set():
                for child in self._children:
                    self._keep(child, lifeline)
                stop.wait(_TURN_S)
        finally:
            self._progress.say("Ending: batches and commits under way are finished first.")
            self._end()
            os.close(held_end)
            os.close(lifeline)

    def _keep(self, child: _Child, lifeline: int) -> None:
        now = time.monotonic()
        if child.process is not None:
            code = child.process.poll()
            if code is None:
                self._kill_hung(child, child.process, now)
                return
            child.process = None
            if now - child.started_at > _STEADY_S:
                child.backoff.reset()
            pause_s = child.backoff.next_s()
            child.not_before = now + pause_s
            self._progress.say(f"The {child.role} process died ({_how(code)}); it starts again in {pause_s:g} s.")
            _LOG.warning("The %s process died (%s).", child.role, _how(code))
        if now >= child.not_before:
            child.process = self._start(child.role, lifeline)
            child.started_at, child.starts = now, child.starts + 1

    def _kill_hung(self, child: _Child, process: subprocess.Popen[bytes], now: float) -> None:
        """Kill a role without a sign of life for too long: it hangs and would never end by itself.

        Only a change of the file's time counts, not the time itself, as wall clocks jump.
        """
        if child.role != PIPELINE:
            return
        try:
            beat = os.stat(self._home / BEAT_FILE).st_mtime_ns
        except OSError:
            beat = 0
        if beat != child.beat:
            child.beat, child.beat_at = beat, now
        elif now - max(child.beat_at, child.started_at) > self._hung_s:
            self._progress.say(
                f"The {child.role} process has given no sign of life for {self._hung_s:g} s: it is killed."
            )
            _LOG.error("The %s process has given no sign of life for %g s: it is killed.", child.role, self._hung_s)
            process.kill()
            child.beat_at = now

    def _start(self, role: str, lifeline: int) -> subprocess.Popen[bytes]:
        numbers = [listener.fileno() for listener in self._sockets] if role == "query" else []
        handover = {LIFELINE: str(lifeline), SOCKETS: ",".join(str(number) for number in numbers)}
        command = [sys.executable, "-m", "hybrid.cli", *self._options, "serve", "--role", role, *self._where]
        return subprocess.Popen(
            command,
            env={**(_QUICK if role == "query" else {}), **os.environ, **handover},
            pass_fds=[lifeline, *numbers],
            stdin=subprocess.DEVNULL,
        )

    def _end(self) -> None:
        running = [child.process for child in self._children if child.process is not None]
        for process in running:
            process.terminate()
        deadline = time.monotonic() + _END_S
        for process in running:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def serve_lock(home: Path, timeout_s: float) -> Iterator[None]:
    """Hold the lock of a home's only `hybrid serve`. ConflictError if another holds it for `timeout_s`."""
    durable.make_private(home)
    with (home / SERVE_LOCK).open("a") as file:
        # A server that has written its address serves the home; otherwise it is starting or ending.
        if not try_lock(file, timeout_s, gives_up=(home / SERVER_FILE).exists):
            raise ConflictError(f"A server runs on {home} already.", hint="hybrid status")
        yield


def listening_sockets(address: Address, wait_s: float = 0.0) -> list[socket.socket]:
    """Return listening sockets, one per port. MachineError if a port is taken for longer than `wait_s`."""
    ports = [address.port] if address.port == address.broker_port != 0 else [address.port, address.broker_port]
    return [_listening(address.host, port, time.monotonic() + wait_s) for port in ports]


def _listening(host: str, port: int, deadline: float) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    while True:
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen(_BACKLOG)
        except OSError as error:
            listener.close()
            if time.monotonic() < deadline:
                time.sleep(_TURN_S)
                continue
            raise MachineError(
                f"Port {port} of {host} cannot be had: {error.strerror}.",
                hint="Choose another: hybrid serve --port N --broker-port N",
            ) from error
        listener.set_inheritable(True)
        return listener


def url_of(one: socket.socket) -> str:
    """Return the URL of a listening socket, as reached from this machine."""
    host, port = one.getsockname()[:2]
    host = _EVERY.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _how(code: int) -> str:
    if code < 0:
        return f"signal {signal.Signals(-code).name}"
    return f"exit code {code}"


def inherited_sockets(environ: Mapping[str, str]) -> list[socket.socket]:
    """Return the listening sockets inherited from `hybrid serve`; none otherwise."""
    numbers = [int(text) for text in environ.get(SOCKETS, "").split(",") if text]
    return [socket.socket(fileno=number) for number in numbers]
