"""A thread that samples the lag of each table while the server runs, whether or not anybody looks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from hybrid.operations.ingestion_lag import ingestion_lags
from hybrid.serve.context import ServerContext
from hybrid.serve.lag_history import INTERVAL_MS

_JOIN_S = 1.0
_LOG = logging.getLogger(__name__)


def sample_lags(context: ServerContext) -> None:
    """Add a sample of each table, unless somebody who looked at the overview has added one in this interval."""
    home = context.home.context
    context.lag.add(ingestion_lags(home, context.open_halves.pinned), home.now_ms(), renews=False)


@contextmanager
def lags_sampled(context: ServerContext, every_s: float = INTERVAL_MS / 1000) -> Iterator[None]:
    """Samples the lags in a thread until the block ends."""
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(every_s):
            try:
                sample_lags(context)
            except Exception:  # the history has a gap, and the server goes on
                _LOG.exception("The lag of the tables could not be sampled")

    thread = threading.Thread(target=work, name="lags", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(_JOIN_S)  # a daemon: a catalog that does not answer does not hold up the end
