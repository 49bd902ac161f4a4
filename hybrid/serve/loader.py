"""Loader threads of the pipeline process: one per table with connectors; loads history, then starts the stream."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from hybrid.api.hybrid import Hybrid
from hybrid.errors import HybridError
from hybrid.logs import log_context
from hybrid.runtime.backoff import Backoff
from hybrid.serve.priority import Rounds

_LOG = logging.getLogger(__name__)
_LOOK_S = 0.5
_FOLLOW_S = 2.0  # polling a table on an object store takes a few requests
_BACKOFF_S = (2.0, 60.0)


class Loader(threading.Thread):
    """Runs the due connectors of `table` until `stop` is set. `lost` tells after an error whether the JVM is gone."""

    def __init__(self, home: Hybrid, table: str, lost: Callable[[], bool]) -> None:
        super().__init__(name=f"load-{table}", daemon=True)
        self.table = table
        self.stop = threading.Event()
        self.rounds = Rounds()
        self._home, self._lost = home, lost
        self._follows = False

    def run(self) -> None:
        """Run due connectors in a loop, with back-off after failures."""
        backoff = Backoff(*_BACKOFF_S)
        with log_context(table=self.table):
            while not self.stop.is_set():
                if self._round():
                    backoff.reset()
                    self.stop.wait(_FOLLOW_S if self._follows else _LOOK_S)
                else:
                    self.stop.wait(backoff.next_s())

    def _round(self) -> bool:
        """Run the connectors that are due; return whether all succeeded."""
        try:
            connectors = self._home.table(self.table).connectors
            self._follows = any(connector.is_followed for connector in connectors.spec.connectors)
            with self.rounds.one():
                said = connectors.run_due(self.stop.is_set).said
            for sentence in said:
                _LOG.info("%s", sentence)
            return not any(connector.state == "FAILED" for connector in connectors.statuses(ask_kafka=False))
        except HybridError as error:
            _LOG.warning("The connectors of '%s' cannot be run: %s", self.table, error)
        except Exception:  # no error may end the thread: retry this table's connectors
            if self._lost():
                self.stop.set()
                return True
            _LOG.exception("Unexpected error while connectors of '%s' ran", self.table)
        return False
