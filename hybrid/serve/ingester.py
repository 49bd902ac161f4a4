"""Ingester threads of the pipeline process: one per table, batch after batch, as long as the table exists.

States, as the catalog shows them:
  INGESTING   batches are committed as rows arrive
  PAUSED      a user paused it; nothing is read until it is resumed
  WAITING     the topic does not exist yet, or the stream's connector waits for others
  STOPPED     Kafka does not answer, or a topic is gone or recreated: the reason is stored, and it tries again
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping

from hybrid.api.hybrid import Hybrid
from hybrid.api.table import Table
from hybrid.catalog.catalog import CATALOG_ERRORS
from hybrid.catalog.serving import Pause, Serving
from hybrid.clock import wall_clock_ms
from hybrid.errors import HybridError, NotFoundError
from hybrid.ingest.batch import BatchReport
from hybrid.ingest.batch_pace import BatchPace
from hybrid.jvm.spark_errors import unexpected_words
from hybrid.kafka.broker_clients import BrokerClients
from hybrid.logs import Lasting, log_context
from hybrid.runtime.backoff import Backoff
from hybrid.serve.idle_stream import IdleStream
from hybrid.serve.priority import Rounds

_LOG = logging.getLogger(__name__)
_PAUSED_POLL_S = 0.5
_BACKOFF_S = (1.0, 15.0)
# States that stay are confirmed so often, for whoever asks when Kafka was last looked at.
_CONFIRM_S = 3.0
State = tuple[str, str | None]


class SharedLooks:
    """What the ingesters of a process do together: they watch brokers, read the pauses and confirm their states.

    Each of a hundred idle tables would otherwise write to the catalog every few seconds.
    """

    def __init__(self, serving: Serving) -> None:
        self.clients = BrokerClients()
        self._serving = serving
        self._pauses: Mapping[str, Pause] = {}
        self._read_at = -_PAUSED_POLL_S
        self._lock = threading.Lock()
        self._confirmed_ms: dict[str, int] = {}
        self._confirmed_at = time.monotonic()

    def pauses(self, *, newest: bool) -> Mapping[str, Pause]:
        """The paused tables: the `newest` ones, or those of the last half second. Raises one of `CATALOG_ERRORS`."""
        # Without a lock: a catalog that does not answer would let all tables wait one behind the other.
        if newest or time.monotonic() - self._read_at >= _PAUSED_POLL_S:
            self._pauses = self._serving.pauses()
            self._read_at = time.monotonic()
        return self._pauses

    def noted(self, table: str) -> None:
        """A state of a table is noted now: what is to be confirmed of the one before is void."""
        with self._lock:
            self._confirmed_ms.pop(table, None)

    def confirm(self, table: str) -> None:
        """Records, some seconds later and together with others, that the noted state of a table still holds now.

        Raises one of `CATALOG_ERRORS`.
        """
        with self._lock:
            self._confirmed_ms[table] = wall_clock_ms()
            if time.monotonic() - self._confirmed_at < _CONFIRM_S:
                return
            self._confirmed_at = time.monotonic()
            confirmed_ms, self._confirmed_ms = self._confirmed_ms, {}
        self._serving.confirm_ingestions(confirmed_ms)


class Ingester(threading.Thread):
    """Ingests `table` until `stop` is set. `lost` tells after an error whether the JVM is gone.

    `shared` is the same for the ingesters of all tables.
    """

    def __init__(self, home: Hybrid, table: str, shared: SharedLooks, lost: Callable[[], bool]) -> None:
        super().__init__(name=f"ingest-{table}", daemon=True)
        self.table = table
        self.stop = threading.Event()
        self.rounds = Rounds()
        # Whether a first batch was committed, or cannot be.
        self.has_begun = False
        self._home, self._lost, self._shared = home, lost, shared
        self._noted: State | None = None
        self._noted_behind: int | None = None
        self._is_noted = False
        self._idle = IdleStream(shared.clients, home.settings.ingest_interval_s)
        self._backoff = Backoff(*_BACKOFF_S)
        self._pace = BatchPace()
        self._held: tuple[str, str | None] | None = None
        self._has_looked = False
        self._complaints = Lasting()

    def run(self) -> None:
        """Ingest batches until `stop` is set."""
        with log_context(table=self.table):
            try:
                while not self.stop.is_set():
                    pause_s = self._round()
                    self.has_begun = True
                    self.stop.wait(pause_s)
            finally:
                self._idle.close()

    def _round(self) -> float:
        """Ingest one batch; return the seconds to wait before the next."""
        started = time.monotonic()
        try:
            table = self._home.table(self.table)
            is_idle = self._idle.is_unchanged(table)
            self._look_at_catalog(table, is_idle=is_idle)
            if self._held is not None:
                self.rounds.has_rest = False
                self._note(*self._held, None)
                return _PAUSED_POLL_S
            if is_idle:
                self._note("INGESTING", None, 0)
                return self._home.settings.ingest_interval_s
            with self.rounds.one():
                report = table.ingest_batch(self._pace.offsets_max)
            self._idle.planned(table, found_nothing=report is None)
        except NotFoundError as error:
            return self._failed("WAITING", error.words)
        except HybridError as error:
            return self._failed("STOPPED", error.words)
        except Exception as error:  # any error stops this table with its reason, not the others
            if self._lost():
                self.stop.set()
                return 0
            _LOG.exception("Unexpected error while '%s' was ingested", self.table)
            return self._failed("STOPPED", unexpected_words(error))
        self._backoff.reset()
        self.rounds.has_rest = report is not None and report.behind > 0
        self._note("INGESTING", None, report.behind if report else 0)
        return self._rest_s(report, time.monotonic() - started)

    def _look_at_catalog(self, table: Table, *, is_idle: bool) -> None:
        """Read whether the table is paused or waits. While the catalog is unreadable, the last state holds."""
        try:
            pause = self._shared.pauses(newest=not is_idle).get(self.table)
            waits = table.connectors.waits() if pause is None else None
        except CATALOG_ERRORS as error:
            if self._has_looked:
                if self._complaints.passes("look"):
                    _LOG.warning("The catalog cannot be read, '%s' is ingested as before: %s", self.table, error)
                return
            raise
        self._has_looked = True
        if pause is not None:
            self._held = ("PAUSED", pause.comment)
        else:
            self._held = ("WAITING", waits) if waits is not None else None

    def _rest_s(self, report: BatchReport | None, took_s: float) -> float:
        """Return the seconds to wait after a batch, or after a poll without messages."""
        interval_s = self._home.settings.ingest_interval_s
        if report is None:
            return interval_s
        self._pace = self._pace.after(report.offsets, took_s, report.behind)
        return 0 if self.rounds.has_rest else self._pace.rest_s(interval_s)

    def _failed(self, state: str, reason: str) -> float:
        self.rounds.has_rest = False
        self._note(state, reason, None)
        return self._backoff.next_s()

    def _note(self, state: str, detail: str | None, behind: int | None) -> None:
        if self.stop.is_set():
            return
        if self._noted != (state, detail):
            _LOG.log(
                logging.WARNING if detail else logging.INFO, "Ingestion of '%s' is %s: %s", self.table, state, detail
            )
        is_noted = self._is_noted and self._noted == (state, detail) and self._noted_behind == behind
        self._noted, self._noted_behind, self._is_noted = (state, detail), behind, False
        try:
            if is_noted:
                self._shared.confirm(self.table)
            else:
                self._shared.noted(self.table)
                self._home.context.catalog.serving.note_ingestion(self.table, state, detail, behind)
            self._is_noted = True
        except CATALOG_ERRORS as error:  # ingestion does not depend on the catalog
            if self._complaints.passes("note"):
                _LOG.warning("How '%s' is ingested cannot be noted: %s", self.table, error)
