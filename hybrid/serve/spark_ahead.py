"""Spark of a standby, before it is needed: the JVM from the start, the session while a take-over is expected."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hybrid.home.home import Home

_LOG = logging.getLogger(__name__)


class SparkAhead:
    """Starts Spark in a thread, one step at a time. What fails is logged: a take-over then starts Spark itself."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._step: threading.Thread | None = None
        self._has_session = False

    def start_jvm(self) -> None:
        """Start the JVM. Without this call the others do nothing."""
        self._begin(self._home.start_jvm)

    def follow(self, *, expects_take_over: bool) -> None:
        """Start the session when a take-over is expected; end it, and free a cluster's cores, when it no longer is."""
        if self._step is None or self._step.is_alive() or expects_take_over == self._has_session:
            return
        self._has_session = expects_take_over
        if expects_take_over:
            _LOG.warning("The home that writes is overdue. Starting Spark for a take-over.")
            self._begin(lambda: self._home.bench.session)
        else:
            _LOG.info("The home that writes is there again. Ending the Spark session.")
            self._begin(self._home.bench.end_session)

    def wait(self) -> None:
        """Wait for the step under way."""
        if self._step is not None:
            self._step.join()

    def _begin(self, step: Callable[[], object]) -> None:
        def run() -> None:
            try:
                step()
            except Exception as error:  # py4j's errors have no common base class with ours
                _LOG.warning("Spark could not be made ready for a take-over: %s", error)

        self._step = threading.Thread(target=run, name="spark-ahead", daemon=True)
        self._step.start()
