"""The process of the query role: HTTP on its sockets. It starts no JVM."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence

from hybrid.api.hybrid import Hybrid
from hybrid.kafka.admin_pool import admin_clients_kept
from hybrid.kafka.clients import import_clients
from hybrid.runtime.gc_tuning import collect_rarely
from hybrid.serve.admission import RUNNING_OF_ONE
from hybrid.serve.app import LOOPBACK, build_app
from hybrid.serve.connection_limits import limits_of_process
from hybrid.serve.context import ServerLimits
from hybrid.serve.httpserver import http_server
from hybrid.serve.lag_sampler import lags_sampled
from hybrid.serve.lifeline import ignore_terminal, watch_lifeline
from hybrid.serve.supervisor import Address, inherited_sockets, listening_sockets, url_of

_SWITCH_S = 0.0005


def run_query(home: Hybrid, address: Address, options: Sequence[str]) -> int:
    """Serves the HTTP application on its sockets until SIGTERM."""
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
    ignore_terminal()
    watch_lifeline("query", sockets, options, lambda: server.should_exit)
    with admin_clients_kept(), lags_sampled(app.state.context):
        server.run(sockets=sockets)
    return 0
