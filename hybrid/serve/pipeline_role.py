"""The process of the pipeline role: ingestion, tasks and jobs on a warm Spark session. It imports no web framework."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Sequence

from hybrid.api.hybrid import Hybrid
from hybrid.kafka.admin_pool import admin_clients_kept
from hybrid.kafka.clients import import_clients
from hybrid.runtime.signals import act_on_signals
from hybrid.serve.lifeline import GRACE_S, ignore_terminal, succeed, watch_lifeline
from hybrid.serve.pipeline import Pipeline


def run_pipeline(home: Hybrid, options: Sequence[str]) -> int:
    """Works until SIGTERM."""
    import_clients()
    stop, fallen, terminated = threading.Event(), threading.Event(), threading.Event()

    def terminate() -> None:
        terminated.set()
        stop.set()

    act_on_signals(terminate, signal.SIGTERM)
    ignore_terminal()
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
        time.sleep(max(0.0, fallen_at[0] + GRACE_S["pipeline"] - time.monotonic()))
        if not terminated.is_set():
            succeed(home, options)
    return code
