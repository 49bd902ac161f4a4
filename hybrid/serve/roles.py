"""The processes of the two roles: start, work, end, and the succession after a crash of `hybrid serve`."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence

from hybrid.api.hybrid import Hybrid
from hybrid.errors import ConflictError
from hybrid.kafka.admin_pool import admin_clients_kept
from hybrid.kafka.clients import import_clients
from hybrid.runtime.gc_tuning import collect_rarely
from hybrid.runtime.signals import act_on_signals
from hybrid.serve.admission import RUNNING_OF_ONE
from hybrid.serve.app import LOOPBACK, build_app
from hybrid.serve.connection_limits import limits_of_process
from hybrid.serve.context import ServerLimits
from hybrid.serve.httpserver import http_server
from hybrid.serve.lag_sampler import lags_sampled
from hybrid.serve.supervisor import (
    LIFELINE,
    SOCKETS,
    SUCCESSOR,
    Address,
    inherited_sockets,
    listening_sockets,
    serve_lock,
    url_of,
)

_LOG = logging.getLogger(__name__)
_GRACE_S = {"query": 1.0, "pipeline": 4.0}
_SWITCH_S = 0.0005


def run_query(home: Hybrid, address: Address, options: Sequence[str]) -> int:
    """The query role: the HTTP application on its sockets until SIGTERM. Starts no JVM."""
    sockets = inherited_sockets(os.environ) or listening_sockets(address)
    settings = home.settings
    limits = ServerLimits(
        upload_bytes=settings.upload_bytes_max,
        query_timeout_ms=settings.query_timeout_ms,
        query_rows=settings.query_rows_max,
        query_bytes=settings.query_result_bytes_max,
        query_memory_bytes=settings.query_memory_bytes,
        query_memory_total_bytes=settings.query_memory_total_bytes,
        query_running=settings.query_running_max or RUNNING_OF_ONE,
        export_timeout_s=settings.query_export_timeout_s,
    )
    _ = home.context.catalog, home.context.definitions  # created before threads start
    import_clients()
    # The Python steps of a statement must not wait 5 ms each for a thread that decodes stream rows.
    sys.setswitchinterval(_SWITCH_S)
    collect_rarely()
    # Left by a killed process; its rows may have been purged since.
    shutil.rmtree(settings.spill, ignore_errors=True)
    if settings.cache_bytes:
        home.serve_from_memory(settings.cache_bytes)
    hosts = LOOPBACK if address.is_loopback else None
    app = build_app(home, limits, url_of(sockets[0]), hosts, closed=not address.is_loopback)
    server = http_server(app, limits_of_process())
    _ignore_terminal()
    watch_lifeline("query", sockets, options, lambda: server.should_exit)
    with admin_clients_kept(), lags_sampled(app.state.context):
        server.run(sockets=sockets)
    return 0


def run_pipeline(home: Hybrid, address: Address, options: Sequence[str]) -> int:
    """The pipeline role: ingestion, tasks and jobs on a warm Spark session until SIGTERM."""
    from hybrid.serve.pipeline import Pipeline

    import_clients()
    stop, fallen, terminated = threading.Event(), threading.Event(), threading.Event()

    def terminate() -> None:
        terminated.set()
        stop.set()

    act_on_signals(terminate, signal.SIGTERM)
    _ignore_terminal()
    fallen_at = [0.0]

    def let_go() -> bool:
        if not stop.is_set():
            fallen_at[0] = time.monotonic()
            fallen.set()
            stop.set()
        return True  # the succession below waits for the end of the work

    watch_lifeline("pipeline", (), options, let_go)
    with admin_clients_kept():
        code = Pipeline(home, stop).run()
    if fallen.is_set():
        time.sleep(max(0.0, fallen_at[0] + _GRACE_S["pipeline"] - time.monotonic()))
        if not terminated.is_set():
            succeed(home, options)
    return code


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
        time.sleep(_GRACE_S[role])
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


def _ignore_terminal() -> None:
    """Ignore Ctrl-C and a closed terminal: they reach the whole group, but `hybrid serve` ends its processes itself."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
